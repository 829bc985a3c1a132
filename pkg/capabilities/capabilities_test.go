package capabilities

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

// TestServed: group versions and kinds have the form that charts expect. A group that does not
// answer is unknown, not missing.
func TestServed(t *testing.T) {
	groups := []*metav1.APIGroup{
		{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "v1", Version: "v1"}}},
		{Name: "policy", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "policy/v1", Version: "v1"}}},
		{Name: "metrics.k8s.io", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "metrics.k8s.io/v1beta1", Version: "v1beta1"}}},
	}
	resources := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "pods/status", Kind: "Pod", Namespaced: true}, {Name: "pods/eviction", Kind: "Eviction", Namespaced: true}, {Name: "nodes", Kind: "Node"}}},
		{GroupVersion: "policy/v1", APIResources: []metav1.APIResource{{Name: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true}}},
	}
	stale := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("stale")}}
	got, err := served(groups, resources, stale)
	if err != nil {
		t.Fatal(err)
	}
	want := &template.Capabilities{
		APIVersions:   []string{"metrics.k8s.io/v1beta1", "policy/v1", "policy/v1/PodDisruptionBudget", "v1", "v1/Eviction", "v1/Node", "v1/Pod"},
		ClusterScoped: []string{"Node"}, Unknown: []string{"metrics.k8s.io/v1beta1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, err := served(nil, nil, errors.New("no connection")); err == nil {
		t.Error("a cluster that does not answer has capabilities")
	}
}
