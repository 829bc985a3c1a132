package chain

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

func is(condition string) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.NewTime(noon)})
	}
}

func annotated(key, value string) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value) }
}

func TestNoteCounts(t *testing.T) {
	objects := func(digests ...string) func(*olmv1alpha1.ClusterExtensionRevision) {
		var lines []string
		for i, digest := range digests {
			if digest != "" {
				lines = append(lines, fmt.Sprintf("v1 ConfigMap %c %s", 'a'+i, digest))
			}
		}
		return listing(lines...)
	}
	s := set(t, numbered(2, objects("1", "", "other", "4", "5")), numbered(1, objects("1", "2", "3")))
	if err := s.confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&store.Counts{Objects: 3, Added: 3}, s.heads.rows[1].Counts); diff != "" {
		t.Errorf("all objects of a first revision are added (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&store.Counts{Objects: 4, Added: 2, Changed: 1, Removed: 1}, s.heads.rows[2].Counts); diff != "" {
		t.Errorf("against the revision before (-want +got):\n%s", diff)
	}
}

// TestMemoriesGoWithTheirRevisions: the memory of a deleted revision is dropped, and the memories
// of other revisions are kept.
func TestMemoriesGoWithTheirRevisions(t *testing.T) {
	var kept memoryByChain
	two, one := *numbered(2), *numbered(1)
	first := kept.open("argocd", []olmv1alpha1.ClusterExtensionRevision{two, one})
	second := kept.open("argocd", []olmv1alpha1.ClusterExtensionRevision{two})
	if len(second) != 1 || second[two.UID] != first[two.UID] || first[two.UID] == nil {
		t.Errorf("argocd-1 went, and what is known is %v, was %v", second, first)
	}
	if kept.open("argocd", nil); len(kept.chains) != 0 {
		t.Errorf("the chain is gone, and %v is left", kept.chains)
	}
}
