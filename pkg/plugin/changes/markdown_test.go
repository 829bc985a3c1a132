package changes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestMarkdownBounds: text beyond the limit is omitted and counted. Content of an object cannot end
// the block around it.
func TestMarkdownBounds(t *testing.T) {
	diff := &v1alpha1.RevisionDiff{From: "a-1", To: "a-2"}
	for range 4000 {
		diff.Changes = append(diff.Changes, v1alpha1.ObjectChange{Change: v1alpha1.ChangeChanged, APIVersion: "v1", Kind: "ConfigMap", Name: strings.Repeat("n", 200)})
	}
	got := Markdown(diff, View{})
	if len(got) > maxMarkdown || !strings.Contains(got, "objects more left out: this comment would be too long") {
		t.Errorf("%d bytes, and the end is %q", len(got), got[max(0, len(got)-200):])
	}
	diff.Changes = []v1alpha1.ObjectChange{{
		Change: v1alpha1.ChangeChanged, APIVersion: "v1", Kind: "ConfigMap", Name: "a|b", Unified: "+ ```\n+ <b>\u202e\n",
	}}
	diff.Notes = []v1alpha1.DiffNote{{Severity: v1alpha1.NoteWarning, Message: "image *x* -> [y](http://z) @team"}}
	want := "### a-1 → a-2: 0 added, 0 changed, 0 removed, 0 unchanged\n\n- **Warning** image \\*x\\* -> \\[y\\](http://z) &#64;team\n" +
		"\n| change | lines | object |\n|---|---|---|\n| Changed | +0/-0 | ConfigMap a\\|b |\n\n````diff\n+ ```\n+ <b>\n````\n\n"
	if got := Markdown(diff, View{}); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestMissing: omissions are named by object, with their amount and the command that shows them.
func TestMissing(t *testing.T) {
	diff := &v1alpha1.RevisionDiff{From: "argocd-1", To: "argocd-2", Truncated: &v1alpha1.DiffTruncation{Lines: 20, Values: 1}}
	for i := range 20 {
		change := v1alpha1.ObjectChange{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "argocd", Name: fmt.Sprint("server-", i)}
		if i > 0 {
			change.Truncated = &v1alpha1.DiffTruncation{Lines: 1, Values: int32(i % 2)}
		}
		diff.Changes = append(diff.Changes, change)
	}
	missing := Missing(diff, View{})
	if want := "1 value, 1 line left out of Deployment.apps argocd/server-1. All of it: kubectl penstock diff argocd-1..argocd-2 --object Deployment.apps/argocd/server-1"; missing[0] != want {
		t.Errorf("says %q, want %q", missing[0], want)
	}
	if last := missing[len(missing)-1]; len(missing) != 11 || !strings.Contains(last, "9 objects more") {
		t.Errorf("%d lines, the last is %q", len(missing), last)
	}
	// For a revision that is not stored, no diff of a single object exists.
	if want, got := "All of it: store argocd-2 without rolling it out (penstock render --paused | kubectl create -f -), then kubectl penstock diff argocd-1..argocd-2 --object", Missing(diff, View{Unstored: true})[0]; !strings.Contains(got, want) {
		t.Errorf("says %q, want %q", got, want)
	}
	if markdown := Markdown(diff, View{}); !strings.Contains(markdown, "argocd-1..argocd-2 --object") {
		t.Errorf("Markdown does not have it: %s", markdown)
	}
}
