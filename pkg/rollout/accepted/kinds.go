package accepted

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/right"
)

// kind is what is known of updates of a kind.
type kind struct {
	resource string
	fields   object
	rights   []right.Right
	quota    bool
	// most bytes of a manifest, or 0 for mostBytes.
	most int
}

// kinds are those of which updates are judged. Kubernetes' validation of an update
// (pkg/apis/*/validation, Validate…Update), its storage (pkg/registry) and its built-in
// admission plugins (plugin/pkg/admission) were read for each: docs/adr/0038-known-changes.md.
//
// Not in it, on purpose: custom resources (their definition may have rules that compare old
// and new), Namespaces (Pod Security judges their labels), PersistentVolumeClaims (quotas and
// volumes), PriorityClasses (of which one may be the default), Jobs' and Pods' content, webhooks and
// policies, APIServices.
var kinds = map[schema.GroupVersionKind]kind{
	{Version: "v1", Kind: "ConfigMap"}: {resource: "configmaps", fields: object{
		fields: map[string]rule{"metadata": metadata, "data": texts, "binaryData": octets},
		whole:  configMap,
	}},
	{Version: "v1", Kind: "Secret"}: {resource: "secrets", fields: object{
		fields: map[string]rule{"metadata": metadata, "data": octets},
		whole:  opaque,
	}},
	{Version: "v1", Kind: "ServiceAccount"}: {resource: "serviceaccounts", fields: object{
		fields: map[string]rule{"metadata": metadata, "automountServiceAccountToken": boolean},
	}},
	// Quotas count services by their type, and refuse every update of one while their own
	// state is not known (k8s.io/apiserver/pkg/admission/plugin/resourcequota, CheckRequest).
	{Version: "v1", Kind: "Service"}: {resource: "services", fields: metadataOnly(), quota: true},

	{Group: "apps", Version: "v1", Kind: "Deployment"}:  {resource: "deployments", fields: workload(scaled)},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}: {resource: "statefulsets", fields: workload(scaled)},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}:   {resource: "daemonsets", fields: workload(nil)},

	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}:               {resource: "roles", fields: role(true), rights: roleRights("escalate", "roles")},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}:        {resource: "clusterroles", fields: role(false), rights: roleRights("escalate", "clusterroles")},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}:        {resource: "rolebindings", fields: metadataOnly(), rights: roleRights("bind", "roles", "clusterroles")},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}: {resource: "clusterrolebindings", fields: metadataOnly(), rights: roleRights("bind", "clusterroles")},

	{Group: "batch", Version: "v1", Kind: "CronJob"}:                       {resource: "cronjobs", fields: metadataOnly()},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:          {resource: "poddisruptionbudgets", fields: metadataOnly()},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}:     {resource: "networkpolicies", fields: metadataOnly()},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}:           {resource: "ingresses", fields: metadataOnly()},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}: {resource: "horizontalpodautoscalers", fields: metadataOnly()},

	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: {resource: "customresourcedefinitions", fields: customResourceDefinition(), most: mostBytesOfDefinition},
}

// scaled are fields of kinds with a number of replicas.
var scaled = map[string]rule{"replicas": replicas}

// roleRights are what Kubernetes asks for on roles: whoever writes a binding is to have the verb on the
// role that it names (pkg/registry/rbac, BindingAuthorized).
func roleRights(verb string, resources ...string) []right.Right {
	var all []right.Right
	for _, resource := range resources {
		all = append(all, right.Right{Verb: verb, Group: "rbac.authorization.k8s.io", Resource: resource})
	}
	return all
}

// metadataOnly are kinds of which nothing but labels and annotations is known.
func metadataOnly() object { return object{fields: map[string]rule{"metadata": metadata}} }

// Kinds are those of which updates are judged.
func Kinds() []schema.GroupVersionKind { return slices.Collect(maps.Keys(kinds)) }
