package changes

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// TestFold: objects that change the same version labels are one line, with their number and the
// command that shows them.
func TestFold(t *testing.T) {
	diff := func(from string, labels ...string) *v1alpha1.RevisionDiff {
		diff := &v1alpha1.RevisionDiff{From: from, To: "argocd-2"}
		for i, only := range labels {
			name := fmt.Sprint("object-", i)
			diff.Changes = append(diff.Changes, v1alpha1.ObjectChange{Change: v1alpha1.ChangeChanged, APIVersion: "v1", Kind: "ConfigMap", Name: name, Unified: "+ line of " + name + "\n", OnlyLabels: only})
		}
		return diff
	}
	const version = "app.kubernetes.io/version 1 → 2"
	for name, tc := range map[string]struct {
		reason      string
		diff        *v1alpha1.RevisionDiff
		view        View
		says, names []string
	}{
		"Folded": {
			reason: "the others are shown as before", diff: diff("argocd-1", version, "", version), view: View{Lines: true},
			says: []string{"2 objects change only " + version + ". All of them: kubectl penstock diff argocd-1..argocd-2 --unfold"}, names: []string{"object-1"},
		},
		"Unfolded": {reason: "somebody asks for all", diff: diff("argocd-1", version, version), view: View{Lines: true, Unfold: true}, names: []string{"object-0", "object-1"}},
		"Single":   {reason: "a line about one object is no shorter than its row", diff: diff("argocd-1", version, "helm.sh/chart a → b"), view: View{Lines: true}, names: []string{"object-0", "object-1"}},
		"Several": {
			reason: "each set of labels has its line", diff: diff("argocd-1", version, "helm.sh/chart a → b", version, "helm.sh/chart a → b"),
			says: []string{"2 objects change only " + version + ".", "2 objects change only helm.sh/chart a → b."},
		},
		"Live":     {reason: "a cluster is the second name of a command", diff: diff("live", version, version), says: []string{"kubectl penstock diff argocd-2..live --unfold"}},
		"Unstored": {reason: "no other command knows the revision", diff: diff("argocd-1", version, version), view: View{Unstored: true}, says: []string{"All of them: the same command with --unfold"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			Print(screen.New(&out, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourAuto, func(string) string { return "" }), tc.diff, tc.view)
			markdown := Markdown(tc.diff, tc.view)
			for format, got := range map[string]string{"screen": out.String(), "Markdown": strings.NewReplacer(`\_`, "_", "\n", " ").Replace(markdown)} {
				words := strings.Join(strings.Fields(got), " ")
				for _, line := range tc.says {
					if strings.Count(words, line) != 1 {
						t.Errorf("%s: %s: does not say %q once:\n%s", tc.reason, format, line, got)
					}
				}
				for i := range tc.diff.Changes {
					name, want := tc.diff.Changes[i].Name, 0
					if strings.Contains(strings.Join(tc.names, " "), name) {
						want = 2 // in the table, and in its lines
					}
					if found := strings.Count(got, name); found != want {
						t.Errorf("%s: %s names %s %d times, want %d:\n%s", tc.reason, format, name, found, want, got)
					}
				}
			}
		})
	}
}
