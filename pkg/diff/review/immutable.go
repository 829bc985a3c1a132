package review

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/note"
)

// immutableFields are the fields that an API server refuses to change; the object must be deleted
// first. Fields of setOnce may be set once, but not changed or emptied.
type immutableFields struct {
	always, setOnce []string
}

func immutablesOf(groupKind string) immutableFields {
	switch groupKind {
	case "Deployment.apps", "DaemonSet.apps", "ReplicaSet.apps":
		return immutableFields{always: []string{"spec.selector"}}
	case "StatefulSet.apps":
		return immutableFields{always: []string{
			"spec.selector", "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates",
		}}
	case "Job.batch":
		return immutableFields{always: []string{"spec.selector", "spec.template", "spec.completionMode"}}
	case "Service":
		return immutableFields{setOnce: []string{"spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort"}}
	case "PersistentVolumeClaim":
		return immutableFields{
			always:  []string{"spec.accessModes", "spec.selector", "spec.volumeMode", "spec.dataSource", "spec.dataSourceRef"},
			setOnce: []string{"spec.storageClassName", "spec.volumeName"},
		}
	case "Secret":
		return immutableFields{always: []string{"type"}}
	case "RoleBinding.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io":
		return immutableFields{always: []string{"roleRef"}}
	case "StorageClass.storage.k8s.io":
		return immutableFields{always: []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}}
	case "PriorityClass.scheduling.k8s.io":
		return immutableFields{always: []string{"value", "preemptionPolicy"}}
	case "RuntimeClass.node.k8s.io":
		return immutableFields{always: []string{"handler"}}
	case "IngressClass.networking.k8s.io":
		return immutableFields{always: []string{"spec.controller"}}
	case "PersistentVolume":
		return immutableFields{always: volumeSources(), setOnce: []string{"spec.volumeMode"}}
	case "VolumeAttributesClass.storage.k8s.io":
		return immutableFields{always: []string{"driverName", "parameters"}}
	case "EndpointSlice.discovery.k8s.io":
		return immutableFields{always: []string{"addressType"}}
	case "ControllerRevision.apps":
		return immutableFields{always: []string{"data"}}
	case "ResourceQuota":
		return immutableFields{always: []string{"spec.scopes"}}
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return immutableFields{always: []string{"spec.group", "spec.scope", "spec.names.plural"}}
	}
	return immutableFields{}
}

// volumeSources returns the fields of a PersistentVolume that name the location of its data. The
// API server compares all of them as one value.
func volumeSources() []string {
	var out []string
	source := reflect.TypeFor[corev1.PersistentVolumeSource]()
	for i := range source.NumField() {
		name, _, _ := strings.Cut(source.Field(i).Tag.Get("json"), ",")
		out = append(out, "spec."+name)
	}
	return out
}

// immutable adds notes about changes that the API server will refuse.
func (w *writer) immutable() {
	if !w.stays() {
		return
	}
	fields := immutablesOf(w.change.ID.GroupKind().String())
	for _, field := range fields.always {
		if w.delta.Changed(strings.Split(field, ".")...) {
			w.refused(field)
		}
	}
	for _, field := range fields.setOnce {
		names := strings.Split(field, ".")
		if was := w.old.At(names...); was != nil && was.Str() != "" && w.new.At(names...) != nil && w.delta.Changed(names...) {
			w.refused(field)
		}
	}
	w.immutableData()
}

// immutableData adds notes about ConfigMaps and Secrets with immutable: true.
func (w *writer) immutableData() {
	kind := w.change.ID.GroupKind().String()
	if kind != "ConfigMap" && kind != "Secret" || !w.old.Field("immutable").IsTrue() {
		return
	}
	for _, field := range []string{"data", "binaryData", "immutable"} {
		if w.delta.Changed(field) {
			w.refused(field)
		}
	}
}

func (w *writer) refused(field string) {
	if field == "roleRef" {
		w.add(note.Critical, note.Immutable, "roleRef changes from %s to %s, which the API server refuses: the binding has to be deleted and created",
			roleOf(w.old), roleOf(w.new))
		return
	}
	w.add(note.Critical, note.Immutable, "%s changes, which the API server refuses: the object has to be deleted and created", field)
}
