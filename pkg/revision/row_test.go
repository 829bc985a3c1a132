package revision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

func TestRow(t *testing.T) {

	cases := map[string]struct {
		reason   string
		revision *olmv1alpha1.ClusterExtensionRevision
		want     store.Row
	}{
		"New":         {"nothing is known yet", numbered(2), store.Row{}},
		"Progressing": {"it is rolled out now", numbered(2, is("Progressing")), store.Row{Result: "Progressing"}},
		"Stalled":     {"beyond its deadline", numbered(2, is("Progressing"), is("Stalled")), store.Row{Result: "Stalled"}},
		"Failing":     {"what a person must help comes first", numbered(2, is("Progressing"), is("Stalled"), is("Failing")), store.Row{Result: "Failing"}},
		"Succeeded":   {"success stays, whatever happens later", numbered(2, is("Failing"), is("Succeeded")), store.Row{Result: "Succeeded", CompletedAt: noon}},
		"GivenUp":     {"what is said of a revision that is given up does not overwrite how far it came", numbered(2, is("Progressing"), state(olmv1alpha1.LifecycleStateArchived)), store.Row{}},
		"GivenUpDone": {"but for success", numbered(2, is("Succeeded"), deleted), store.Row{Result: "Succeeded", CompletedAt: noon}},
		"Words": {"version, cause and what it brought back",
			numbered(2, annotated("olm.operatorframework.io/bundle-version", "v1.2.3"), annotated("kubernetes.io/change-cause", "CVE"), annotated("penstock.dev/rollback-of", "argocd-1")),
			store.Row{Version: "v1.2.3", Cause: "CVE", RollbackOf: 1}},
		"Imported": {"the requester is who asked for it first",
			numbered(2, annotated("penstock.dev/requested-by", "alice"), func(r *olmv1alpha1.ClusterExtensionRevision) {
				r.Status.RequestedBy = &olmv1alpha1.Requester{Username: "importer"}
			}),
			store.Row{RequestedBy: "alice"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.PackRoot, tc.want.CreatedAt = "root", noon
			if diff := cmp.Diff(tc.want, Row(tc.revision, "root")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
