package source

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Names of the phases, in rollout order. Teardown runs in reverse order. So custom resources are
// deleted before the operator that runs their finalizers, and webhook configurations before the
// workloads that serve them.
const (
	Namespaces     = "namespaces"
	Policies       = "policies"
	Identity       = "identity"
	Configuration  = "configuration"
	Storage        = "storage"
	CRDs           = "crds"
	Roles          = "roles"
	Bindings       = "bindings"
	Infrastructure = "infrastructure"
	Deploy         = "deploy"
	Scaling        = "scaling"
	Publish        = "publish"
	Admission      = "admission"
)

// phaseKinds is one row of the table: a phase and the kinds that belong to it.
type phaseKinds struct {
	phase string
	kinds []schema.GroupKind
}

// phaseTable lists the kinds of each phase. Sort has two more rules: kinds that the set itself
// defines belong to publish, and unknown kinds to infrastructure.
func phaseTable() []phaseKinds {
	return []phaseKinds{
		{Namespaces, kinds("", "Namespace")},
		// Limits apply to objects that are created later.
		{Policies, slices.Concat(
			kinds("", "LimitRange", "ResourceQuota"),
			kinds("flowcontrol.apiserver.k8s.io", "FlowSchema", "PriorityLevelConfiguration"),
			kinds("networking.k8s.io", "NetworkPolicy"),
			kinds("node.k8s.io", "RuntimeClass"),
			kinds("policy", "PodDisruptionBudget"),
			kinds("policy.networking.k8s.io", "AdminNetworkPolicy", "BaselineAdminNetworkPolicy"),
			kinds("scheduling.k8s.io", "PriorityClass"),
			kinds("security.openshift.io", "SecurityContextConstraints"),
		)},
		{Identity, kinds("", "ServiceAccount")},
		{Configuration, slices.Concat(
			kinds("", "ConfigMap", "PodTemplate", "Secret"),
			kinds("certificates.k8s.io", "ClusterTrustBundle"),
		)},
		{Storage, slices.Concat(
			kinds("", "PersistentVolume", "PersistentVolumeClaim"),
			kinds("snapshot.storage.k8s.io", "VolumeSnapshotClass"),
			kinds("storage.k8s.io", "CSIDriver", "StorageClass", "VolumeAttributesClass"),
		)},
		{CRDs, kinds("apiextensions.k8s.io", "CustomResourceDefinition")},
		{Roles, kinds("rbac.authorization.k8s.io", "ClusterRole", "Role")},
		// After the roles, because the API server checks the role of a binding.
		{Bindings, kinds("rbac.authorization.k8s.io", "ClusterRoleBinding", "RoleBinding")},
		// Objects that workloads need to become ready: addresses, and mounted certificates.
		{Infrastructure, slices.Concat(
			kinds("", "Endpoints", "Service"),
			kinds("cert-manager.io", "Certificate", "ClusterIssuer", "Issuer"),
			kinds("discovery.k8s.io", "EndpointSlice"),
			kinds("networking.k8s.io", "IngressClass"),
			kinds("resource.k8s.io", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
		)},
		{Deploy, slices.Concat(
			kinds("", "Pod", "ReplicationController"),
			kinds("apps", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
			kinds("apps.openshift.io", "DeploymentConfig"),
			kinds("batch", "CronJob", "Job"),
		)},
		{Scaling, slices.Concat(
			kinds("autoscaling", "HorizontalPodAutoscaler"),
			kinds("autoscaling.k8s.io", "VerticalPodAutoscaler"),
			kinds("keda.sh", "ScaledJob", "ScaledObject"),
		)},
		// Objects that make running workloads reachable and visible.
		{Publish, slices.Concat(
			kinds("apiregistration.k8s.io", "APIService"),
			kinds("console.openshift.io", "ConsoleCLIDownload", "ConsoleExternalLogLink", "ConsoleLink",
				"ConsoleNotification", "ConsolePlugin", "ConsoleQuickStart", "ConsoleSample", "ConsoleYAMLSample"),
			kinds("gateway.networking.k8s.io", "GRPCRoute", "Gateway", "HTTPRoute", "TCPRoute", "TLSRoute", "UDPRoute"),
			kinds("monitoring.coreos.com", "PodMonitor", "Probe", "PrometheusRule", "ServiceMonitor"),
			kinds("networking.k8s.io", "Ingress"),
			kinds("route.openshift.io", "Route"),
		)},
		// Last, because a webhook that is registered before it is served refuses requests.
		{Admission, kinds("admissionregistration.k8s.io",
			"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
			"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration")},
	}
}

// Sort sorts objects into phases, in the order of the phase table, and omits empty phases. Within a
// phase it sorts them by group, kind, namespace and name, so the order of the input does not
// matter.
//
// Custom resources whose CustomResourceDefinition is in the same set always belong to publish. A
// Deployment of the set may serve their conversion and admission, and run their finalizers on
// teardown.
//
// Other kinds that the table does not list belong to infrastructure, before the workloads, which
// may wait for them. For example, an ExternalSecret creates a Secret that a workload mounts. In a
// later phase it would never be applied, because a phase waits for its workloads.
func Sort(objects []manifest.Object) ([]Phase, error) {
	defined, err := definedKinds(objects)
	if err != nil {
		return nil, err
	}
	table := phaseTable()
	listed := map[schema.GroupKind]string{}
	for _, row := range table {
		for _, kind := range row.kinds {
			listed[kind] = row.phase
		}
	}
	byPhase := map[string][]manifest.Object{}
	for _, object := range objects {
		phase, ok := listed[object.GroupKind()]
		switch {
		case defined[object.GroupKind()]:
			phase = Publish
		case !ok:
			phase = Infrastructure
		}
		byPhase[phase] = append(byPhase[phase], object)
	}
	var phases []Phase
	for _, row := range table {
		if members := byPhase[row.phase]; len(members) > 0 {
			slices.SortFunc(members, byIdentity)
			phases = append(phases, Phase{Name: row.phase, Objects: members})
		}
	}
	return phases, nil
}

func definedKinds(objects []manifest.Object) (map[schema.GroupKind]bool, error) {
	defined := map[schema.GroupKind]bool{}
	for _, object := range objects {
		if !object.IsDefinition() {
			continue
		}
		kind, err := object.DefinedKind()
		if err != nil {
			return nil, fmt.Errorf("reading which kind %s defines: %w", object.ID, err)
		}
		defined[kind] = true
	}
	return defined, nil
}

func byIdentity(a, b manifest.Object) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
		// Only duplicates are equal so far, and renderers refuse them.
		cmp.Compare(a.Version, b.Version),
	)
}

func kinds(group string, names ...string) []schema.GroupKind {
	list := make([]schema.GroupKind, 0, len(names))
	for _, name := range names {
		list = append(list, schema.GroupKind{Group: group, Kind: name})
	}
	return list
}
