package status

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/extension"
)

func TestEvents(t *testing.T) {
	none := extension.Status{}
	rollingOut := Of(facts(with(rev(1, rolling, failing("ProbeFailed", "")))))
	further := Of(facts(with(rev(1, rolling))))
	installed := Of(facts(with(rev(1, well))))
	unwell := installed
	unwell.Conditions = slices.Clone(installed.Conditions)
	meta.SetStatusCondition(&unwell.Conditions, metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, Reason: "ProbeFailure", Message: "x"})
	upgraded := Of(facts(with(rev(2, well))))
	proposed := Of(facts(with(rev(1, well), rev(2, proposedFor("1")))))
	deprecated := Of(facts(with(rev(1, well)), func(f *Facts) { f.Deprecations = &Deprecations{Package: []string{"use dex"}} }))
	denied := Of(facts(outcome(Denied, strings.Repeat("x", 5000), "")))
	for name, tc := range map[string]struct {
		reason        string
		before, after extension.Status
		want          []string
	}{
		"Begins":     {reason: "what goes on is told", before: none, after: rollingOut, want: []string{"RollingOut"}},
		"GoesOn":     {reason: "a message that counts on is no news", before: rollingOut, after: further},
		"Installed":  {reason: "the version is told, and that all is well by that", before: further, after: installed, want: []string{"Installed"}},
		"Recovered":  {reason: "of the same version, that all is well", before: unwell, after: installed, want: []string{"Succeeded"}},
		"Same":       {reason: "nothing happened", before: installed, after: installed},
		"Upgraded":   {reason: "the version is another one", before: installed, after: upgraded, want: []string{"Installed"}},
		"Proposed":   {reason: "somebody may approve it", before: installed, after: proposed, want: []string{"UpgradeAvailable"}},
		"Deprecated": {reason: "somebody should look", before: installed, after: deprecated, want: []string{"Deprecated!"}},
		"Denied":     {reason: "only a person can help", before: none, after: denied, want: []string{"Denied!"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, event := range Events(tc.before, tc.after) {
				if len(event.Note) > longestNote || event.Note == "" {
					t.Errorf("the note of %s has %d bytes", event.Reason, len(event.Note))
				}
				reason := event.Reason
				if event.Warning {
					reason += "!"
				}
				got = append(got, reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
