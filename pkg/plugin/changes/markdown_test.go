package changes

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestMarkdownBounds: what is too long is left out and counted, and nothing in it ends what is
// around it.
func TestMarkdownBounds(t *testing.T) {
	diff := &v1alpha1.RevisionDiff{From: "a-1", To: "a-2"}
	for range 4000 {
		diff.Changes = append(diff.Changes, v1alpha1.ObjectChange{Change: v1alpha1.ChangeChanged, APIVersion: "v1", Kind: "ConfigMap", Name: strings.Repeat("n", 200)})
	}
	got := Markdown(diff)
	if len(got) > maxMarkdown || !strings.Contains(got, "objects more left out: this comment would be too long") {
		t.Errorf("%d bytes, and the end is %q", len(got), got[max(0, len(got)-200):])
	}
	diff.Changes = []v1alpha1.ObjectChange{{
		Change: v1alpha1.ChangeChanged, APIVersion: "v1", Kind: "ConfigMap", Name: "a|b", Unified: "+ ```\n+ <b>\u202e\n",
	}}
	diff.Notes = []v1alpha1.DiffNote{{Severity: v1alpha1.NoteWarning, Message: "image *x* -> [y](http://z) @team"}}
	want := "### a-1 → a-2: 0 added, 0 changed, 0 removed, 0 unchanged\n\n- **Warning** image \\*x\\* -> \\[y\\](http://z) &#64;team\n" +
		"\n| change | lines | object |\n|---|---|---|\n| Changed | +0/-0 | ConfigMap a\\|b |\n\n````diff\n+ ```\n+ <b>\n````\n\n"
	if got := Markdown(diff); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
