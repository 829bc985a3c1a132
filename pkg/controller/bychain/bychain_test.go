package bychain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestNewestFirst(t *testing.T) {
	var list []olmv1alpha1.ClusterExtensionRevision
	for _, number := range []int64{2, 10, 1} { // by name, 10 would come before 2
		list = append(list, olmv1alpha1.ClusterExtensionRevision{Spec: olmv1alpha1.ClusterExtensionRevisionSpec{Revision: number}})
	}
	NewestFirst(list)
	var got []int64
	for i := range list {
		got = append(got, list[i].Spec.Revision)
	}
	if diff := cmp.Diff([]int64{10, 2, 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequests(t *testing.T) {
	labelled := &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "x-1", Labels: map[string]string{olmv1alpha1.ChainLabel: "argocd"}}}
	if diff := cmp.Diff([]reconcile.Request{Request("argocd")}, Requests(t.Context(), labelled)); diff != "" {
		t.Errorf("the label says which chain (-want +got):\n%s", diff)
	}
	if got := Requests(t.Context(), &olmv1alpha1.ClusterExtensionRevision{}); got != nil {
		t.Errorf("a revision without the label is of no chain, got %v", got)
	}
}
