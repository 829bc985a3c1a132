package chain

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// headsFunc is a Heads of one function.
type headsFunc func(row store.Row)

func (f headsFunc) Confirm(_ context.Context, _ string, _ int64, _ types.UID, row store.Row) error {
	f(row)
	return nil
}

func is(condition string) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.NewTime(noon)})
	}
}

func annotated(key, value string) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value) }
}

func TestRowOf(t *testing.T) {
	empty := rowOf(revision()).PackRoot
	cases := map[string]struct {
		reason   string
		revision *olmv1alpha1.ClusterExtensionRevision
		want     store.Row
	}{
		"New":         {"nothing is known yet", revision(), store.Row{}},
		"Progressing": {"it is rolled out now", revision(is("Progressing")), store.Row{Result: "Progressing"}},
		"Stalled":     {"beyond its deadline", revision(is("Progressing"), is("Stalled")), store.Row{Result: "Stalled"}},
		"Failing":     {"what a person must help comes first", revision(is("Progressing"), is("Stalled"), is("Failing")), store.Row{Result: "Failing"}},
		"Succeeded":   {"success stays, whatever happens later", revision(is("Failing"), succeeded), store.Row{Result: "Succeeded", CompletedAt: noon}},
		"GivenUp":     {"what is said of a revision that is given up does not overwrite how far it came", revision(is("Progressing"), state(olmv1alpha1.LifecycleStateArchived)), store.Row{}},
		"GivenUpDone": {"but for success", revision(succeeded, deleted), store.Row{Result: "Succeeded", CompletedAt: noon}},
		"Words": {"version, cause and what it brought back",
			revision(annotated("olm.operatorframework.io/bundle-version", "v1.2.3"), annotated("kubernetes.io/change-cause", "CVE"), annotated("penstock.dev/rollback-of", "argocd-1")),
			store.Row{Version: "v1.2.3", Cause: "CVE", RollbackOf: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.PackRoot, tc.want.CreatedAt = empty, noon
			if diff := cmp.Diff(tc.want, rowOf(tc.revision)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHistorian(t *testing.T) {
	objects := func(digests ...string) func(*olmv1alpha1.ClusterExtensionRevision) {
		return func(r *olmv1alpha1.ClusterExtensionRevision) {
			for i, digest := range digests {
				if digest != "" {
					r.Spec.Phases[0].Objects = append(r.Spec.Phases[0].Objects, olmv1alpha1.RevisionObject{APIVersion: "v1", Kind: "ConfigMap", Name: string(rune('a' + i)), Digest: digest})
				}
			}
		}
	}
	var rows []store.Row
	h := newHistorian(headsFunc(func(row store.Row) { rows = append(rows, row) }))
	write := func(of, before *olmv1alpha1.ClusterExtensionRevision) *store.Counts {
		t.Helper()
		rows = nil
		if err := h.write(t.Context(), "argocd", of, before); err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			return nil
		}
		return rows[0].Counts
	}
	first := revision(objects("1", "2", "3"))
	if diff := cmp.Diff(&store.Counts{Objects: 3, Added: 3}, write(first, nil)); diff != "" {
		t.Errorf("all objects of a first revision are added (-want +got):\n%s", diff)
	}
	second := revision(objects("1", "", "other", "4", "5"))
	second.UID = "second"
	if diff := cmp.Diff(&store.Counts{Objects: 4, Added: 2, Changed: 1, Removed: 1}, write(second, first)); diff != "" {
		t.Errorf("against the revision before (-want +got):\n%s", diff)
	}
	if got := write(second, nil); got != nil {
		t.Errorf("nothing new was written: %+v", got)
	}
	second.CreationTimestamp = metav1.NewTime(noon.Add(time.Hour))
	if write(second, first) == nil {
		t.Error("what is new was not written")
	}
}
