//go:build integration

package server_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

// clusters are for tests that need nothing but a host on which no server has run. It
// is a variable of the package because TestMain can pass nothing to tests. More than three at
// the same time only share the processors.
var clusters = cluster.Pool{Most: 3}

// borrow returns a host on which no server seems to have run.
func borrow(t *testing.T) *cluster.Cluster {
	t.Helper()
	return clusters.Borrow(t, func(c *cluster.Cluster) { forget(t, c) })
}

// forget removes what a server and the users of a test leave in a host. Definitions and namespaces
// stay.
func forget(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	gone := func(what string, err error) {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("removing %s of another test: %v", what, err)
		}
	}
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	for _, version := range []schema.GroupVersion{olmv1alpha1.SchemeGroupVersion, hcov1alpha1.SchemeGroupVersion} {
		name := version.Version + "." + version.Group
		gone(name, services.Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	for _, left := range []struct {
		schema.GroupVersionResource
		namespace string
	}{
		{schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}, ""},
		{schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, ""},
		{schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, "penstock-system"},
		{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "penstock-system"},
		{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "penstock-system"},
		{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, metav1.NamespaceDefault},
	} {
		gone(left.Resource, client.Resource(left.GroupVersionResource).Namespace(left.namespace).
			DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
	// Rights and policies, but for those that kube-apiserver has made.
	ofOthers := metav1.ListOptions{LabelSelector: "kubernetes.io/bootstrapping!=rbac-defaults"}
	for group, resources := range map[schema.GroupVersion][]string{
		{Group: "rbac.authorization.k8s.io", Version: "v1"}: {"clusterrolebindings", "clusterroles", "rolebindings", "roles"},
		{Group: "admissionregistration.k8s.io", Version: "v1"}: {
			"validatingadmissionpolicybindings", "validatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingadmissionpolicies",
		},
	} {
		for _, resource := range resources {
			all, err := client.Resource(group.WithResource(resource)).List(t.Context(), ofOthers)
			if err != nil {
				gone(resource, err)
				continue
			}
			for _, one := range all.Items {
				gone(resource, client.Resource(group.WithResource(resource)).Namespace(one.GetNamespace()).Delete(t.Context(), one.GetName(), metav1.DeleteOptions{}))
			}
		}
	}
	// Somebody took a registration back.
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	_, err = namespaces.Patch(t.Context(), "penstock-system", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"penstock.dev/unregistered-at":null}}}`), metav1.PatchOptions{})
	gone("the annotation of the namespace", err)
	// Services have no deletion of a collection.
	service := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	gone("the Service", client.Resource(service).Namespace("penstock-system").Delete(t.Context(), "penstock", metav1.DeleteOptions{}))
}
