package stage

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Wave is a group of kinds that are rolled out together within a phase.
type Wave struct {
	// Name describes the kinds of the wave.
	Name string
	// Kinds of the wave, sorted by group and kind.
	Kinds []schema.GroupKind
	// Rest is true for the wave that also contains every kind that no wave lists.
	Rest bool
	// Early is true for kinds that need only the existence of the objects of earlier waves, because
	// they do not run.
	Early bool
}

// Waves returns the order of kinds within a phase. So one phase may list a namespace with its
// contents, or a definition with its instances. Teardown uses the reverse order.
//
// A change here moves the stages of existing revisions, while inventories record progress as a
// number of stages. So a kind may change its wave only together with a migration of these numbers.
func Waves() []Wave {
	return []Wave{
		// Objects that must exist before the API server accepts other objects, or admits pods.
		{Name: "foundations", Kinds: flatten(
			kinds("", "Namespace", "PersistentVolume"),
			kinds("apiextensions.k8s.io", "CustomResourceDefinition"),
			kinds("networking.k8s.io", "IngressClass"),
			kinds("node.k8s.io", "RuntimeClass"),
			kinds("resource.k8s.io", "DeviceClass"),
			kinds("scheduling.k8s.io", "PriorityClass"),
			kinds("storage.k8s.io", "CSIDriver", "StorageClass", "VolumeAttributesClass"),
		)},
		// Objects that workloads need at start: their identity, rights, configuration, addresses
		// and limits.
		{Name: "configuration", Early: true, Kinds: flatten(
			kinds("", "ConfigMap", "Endpoints", "LimitRange", "PersistentVolumeClaim", "PodTemplate",
				"ResourceQuota", "Secret", "Service", "ServiceAccount"),
			kinds("certificates.k8s.io", "ClusterTrustBundle"),
			kinds("discovery.k8s.io", "EndpointSlice"),
			kinds("flowcontrol.apiserver.k8s.io", "FlowSchema", "PriorityLevelConfiguration"),
			kinds("networking.k8s.io", "NetworkPolicy"),
			kinds("policy", "PodDisruptionBudget"),
			kinds("rbac.authorization.k8s.io", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
			kinds("resource.k8s.io", "ResourceClaim", "ResourceClaimTemplate"),
			kinds("security.openshift.io", "SecurityContextConstraints"),
		)},
		// Custom resources are in this wave, because workloads may wait for their results (a
		// Certificate makes the Secret that a pod mounts). APIServices are here because they become
		// available only when their workload runs.
		{Name: "workloads", Rest: true},
		// Admission objects are last: the API server calls their workloads for each later write,
		// and a policy might refuse the remaining objects.
		{Name: "admission", Kinds: flatten(
			kinds("admissionregistration.k8s.io",
				"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
				"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"),
		)},
	}
}

// order is the table of waves, indexed by kind.
type order struct {
	table []Wave
	waves map[schema.GroupKind]int
	rest  int
	count int
}

func newOrder(table []Wave) order {
	o := order{table: table, waves: map[schema.GroupKind]int{}, count: len(table)}
	for i, wave := range table {
		if wave.Rest {
			o.rest = i
		}
		for _, kind := range wave.Kinds {
			o.waves[kind] = i
		}
	}
	return o
}

func (o order) waveOf(kind schema.GroupKind) int {
	if wave, known := o.waves[kind]; known {
		return wave
	}
	return o.rest
}

// early reports whether a stage need not wait for the gates of earlier stages. If an earlier stage
// defines a kind of the stage, it must wait, because the kind is not served before that gate opens.
func (o order) early(wave int, steps []Step, before []Stage) bool {
	return len(before) > 0 && o.table[wave].Early && !slices.ContainsFunc(steps, func(step Step) bool {
		return slices.ContainsFunc(before, func(stage Stage) bool { return stage.defines(step.ID) })
	})
}

// defines reports whether a stage has a definition in the API group of an object. The name of a
// definition ends in its group.
func (s Stage) defines(id manifest.ID) bool {
	return id.Group != "" && slices.ContainsFunc(s.Steps, func(step Step) bool {
		return step.IsDefinition() && strings.HasSuffix(step.Name, "."+id.Group)
	})
}

func kinds(group string, names ...string) []schema.GroupKind {
	list := make([]schema.GroupKind, 0, len(names))
	for _, name := range names {
		list = append(list, schema.GroupKind{Group: group, Kind: name})
	}
	return list
}

func flatten(lists ...[]schema.GroupKind) []schema.GroupKind {
	var all []schema.GroupKind
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}
