package bychain

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestNewestFirst(t *testing.T) {
	var list []olmv1alpha1.ClusterExtensionRevision
	for _, number := range []int64{2, 10, 1} { // by name, 10 would precede 2
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

// TestListUnreadable: the list of a chain with an unreadable record returns an error. Lists of
// other chains do not.
func TestListUnreadable(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := olmv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	labelled := func(name, chain string) *olmv1alpha1.ClusterExtensionRevision {
		return &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{olmv1alpha1.ChainLabel: chain}}}
	}
	bad := labelled("a-2", "a")
	meta := objectmeta.Unreadable("a-2", errors.New("damaged"))
	bad.UID, bad.Annotations = meta.UID, meta.Annotations
	from := fake.NewClientBuilder().WithScheme(scheme).WithObjects(labelled("a-1", "a"), bad, labelled("b-1", "b")).Build()
	found, err := List(t.Context(), from, "a")
	var unreadable *UnreadableError
	if !errors.As(err, &unreadable) || unreadable.Revision != "a-2" || unreadable.Why != "damaged" || len(found) != 1 || found[0].Name != "a-1" {
		t.Errorf("got %d revisions and error %v", len(found), err)
	}
	if found, err := List(t.Context(), from, "b"); err != nil || len(found) != 1 {
		t.Errorf("another chain: got %d revisions and error %v", len(found), err)
	}
}
