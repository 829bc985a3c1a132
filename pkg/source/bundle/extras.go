package bundle

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// extraKinds returns the kinds that a bundle may have besides its ClusterServiceVersion and its
// definitions. The value is true for namespaced kinds.
func extraKinds() map[schema.GroupKind]bool {
	const inNamespace, ofCluster = true, false
	return map[schema.GroupKind]bool{
		{Kind: "ConfigMap"}:      inNamespace,
		{Kind: "Secret"}:         inNamespace,
		{Kind: "Service"}:        inNamespace,
		{Kind: "ServiceAccount"}: inNamespace,
		{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}:     inNamespace,
		{Group: "console.openshift.io", Kind: "ConsoleCLIDownload"}:      ofCluster,
		{Group: "console.openshift.io", Kind: "ConsoleLink"}:             ofCluster,
		{Group: "console.openshift.io", Kind: "ConsolePlugin"}:           ofCluster,
		{Group: "console.openshift.io", Kind: "ConsoleQuickStart"}:       ofCluster,
		{Group: "console.openshift.io", Kind: "ConsoleYAMLSample"}:       ofCluster,
		{Group: "monitoring.coreos.com", Kind: "PodMonitor"}:             inNamespace,
		{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}:         inNamespace,
		{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}:         inNamespace,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:              inNamespace,
		{Group: "policy", Kind: "PodDisruptionBudget"}:                   inNamespace,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        ofCluster,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: ofCluster,
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               inNamespace,
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        inNamespace,
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              ofCluster,
	}
}

func kindNames() string {
	kinds := slices.SortedFunc(maps.Keys(extraKinds()), func(a, b schema.GroupKind) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group))
	})
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.String()
	}
	return strings.Join(names, ", ")
}

// additional adds the other objects of the bundle. It moves namespaced objects into the install
// namespace.
func (in *installation) additional() error {
	kinds := extraKinds()
	for _, one := range in.extras {
		content, err := raw(one.Object)
		if err != nil {
			return err
		}
		metadata := child(content, "metadata")
		delete(metadata, "namespace")
		if kinds[one.GroupKind()] {
			metadata["namespace"] = in.options.InstallNamespace
		}
		if one.Object, err = manifest.Canonical(content); err != nil {
			return fail(one, one.Line, "%s: %v", one.ID, err)
		}
		if err := in.place(one); err != nil {
			return err
		}
	}
	return nil
}
