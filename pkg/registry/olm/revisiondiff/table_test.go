package revisiondiff

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestWarningsFit: warnings are cut only if the server would cut them all, because the end of a
// sentence may be important.
func TestWarningsFit(t *testing.T) {
	const serverCutsBeyond = 4096
	long := strings.Repeat("é", 3*maxWarningRunes) + " END"
	cases := map[string]struct {
		reason string
		notes  int
		whole  bool
	}{
		"One":  {reason: "there is room", notes: 1, whole: true},
		"Five": {reason: "there is room for all", notes: 5, whole: true},
		"Many": {reason: "of each a part", notes: 12},
		"More": {reason: "of some a part", notes: 400},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changes := &v1alpha1.RevisionDiff{From: "e-1", To: "e-2", Truncated: &v1alpha1.DiffTruncation{Notes: 1}, Summary: v1alpha1.DiffSummary{Withheld: 7}}
			for i := range tc.notes {
				changes.Notes = append(changes.Notes, v1alpha1.DiffNote{Kind: "Pod", Name: fmt.Sprint("p", i), Message: long + "\n"})
			}
			texts := warnings(changes)
			runes := 0
			for _, text := range texts {
				runes += utf8.RuneCountInString(text)
			}
			if runes > serverCutsBeyond {
				t.Errorf("%s: %d characters, the server cuts beyond %d", tc.reason, runes, serverCutsBeyond)
			}
			if got := strings.Contains(texts[0], "END"); got != tc.whole {
				t.Errorf("%s: whole is %t: %s", tc.reason, got, texts[0])
			}
			if strings.Contains(texts[0], "\n") {
				t.Errorf("the server drops %q", texts[0])
			}
		})
	}
}

func TestWithheldSaysWhatIsMissing(t *testing.T) {
	for from, want := range map[string]string{"e-1": "cannot get them: 7", v1alpha1.Live: "cannot both get and patch them: 7"} {
		texts := warnings(&v1alpha1.RevisionDiff{From: from, To: "e-2", Summary: v1alpha1.DiffSummary{Withheld: 7}})
		if got := strings.Join(texts, "\n"); !strings.Contains(got, want) {
			t.Errorf("from %s: %s, want %q", from, got, want)
		}
	}
}

func TestNothingIsSaidOfWhatIsSeen(t *testing.T) {
	cases := map[string]struct {
		summary v1alpha1.DiffSummary
		want    bool
	}{
		"Empty":   {v1alpha1.DiffSummary{}, true},
		"Same":    {v1alpha1.DiffSummary{Unchanged: 3}, true},
		"Partly":  {v1alpha1.DiffSummary{Unchanged: 3, Withheld: 1}, true},
		"LeftOut": {v1alpha1.DiffSummary{Withheld: 15}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			texts := warnings(&v1alpha1.RevisionDiff{From: v1alpha1.Live, To: "e-2", Summary: tc.summary})
			if got := strings.Contains(strings.Join(texts, "\n"), "no difference"); got != tc.want {
				t.Errorf("says that there is no difference: %t, want %t: %q", got, tc.want, texts)
			}
		})
	}
}
