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

// clusters are for tests that only need a host without a former server. It is a package variable
// because TestMain cannot pass values to tests. More than three planes at a time would only compete
// for the processors.
var clusters = cluster.Pool{Most: 3}

// borrow returns a host that looks as if no server had run on it.
func borrow(t *testing.T) *cluster.Cluster {
	t.Helper()
	return clusters.Borrow(t, func(c *cluster.Cluster) { forget(t, c) })
}

// forget removes the remains of a server and of a test's users from a host. Definitions and
// namespaces stay.
func forget(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	gone := func(what string, err error) {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("deleting %s of another test: %v", what, err)
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
	// Remove rights and policies, except those that kube-apiserver created.
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
	// An earlier test may have unregistered Penstock.
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	_, err = namespaces.Patch(t.Context(), "penstock-system", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"penstock.dev/unregistered-at":null}}}`), metav1.PatchOptions{})
	gone("the annotation of the namespace", err)
	// Services do not support deletecollection.
	service := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	gone("the Service", client.Resource(service).Namespace("penstock-system").Delete(t.Context(), "penstock", metav1.DeleteOptions{}))
}
