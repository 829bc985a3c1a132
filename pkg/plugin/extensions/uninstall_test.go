package extensions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// TestLeaving: with orphaned objects, the message mentions neither the deletion of revisions nor
// the uninstallation of the package.
func TestLeaving(t *testing.T) {
	for name, c := range map[string]struct {
		there, orphans bool
		owned          int
		glyph, says    string
	}{
		"on its way":           {true, false, 2, screen.Waiting, "buoy: 2 revisions left"},
		"revisions are last":   {false, false, 1, screen.Waiting, "buoy: 1 revision left"},
		"gone":                 {false, false, 0, screen.Good, "buoy is uninstalled"},
		"orphans on their way": {true, true, 2, screen.Waiting, "buoy: it still owns 2 revisions"},
		"orphaned":             {false, true, 0, screen.Good, "ClusterExtension buoy is deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leaving("buoy", c.there, c.owned, c.orphans); got.Text != c.says || got.Glyph != c.glyph || !got.Keep {
				t.Errorf("%+v, want %s %s", got, c.glyph, c.says)
			}
		})
	}
}

// TestStillLeaving: when the user stops following, the message says that the deletion continues,
// what is left, and why.
func TestStillLeaving(t *testing.T) {
	stuck, waiting := &v1alpha1.ClusterExtensionRevision{}, &v1alpha1.ClusterExtensionRevision{}
	stuck.Name, waiting.Name = "buoy-1", "buoy-2"
	stuck.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailing, Status: metav1.ConditionTrue, Reason: "Denied", Message: "nobody may delete it"}}
	left := []*v1alpha1.ClusterExtensionRevision{stuck, waiting}
	const goesOn = "the deletion of buoy continues by itself, and nothing else was deleted"
	for orphans, want := range map[bool]string{
		false: goesOn + "; buoy-1 is left: nobody may delete it; buoy-2 is left",
		true:  goesOn + "; it still owns buoy-1, which stays; it still owns buoy-2, which stays",
	} {
		if got := stillLeaving("buoy", left, orphans); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := stillLeaving("buoy", nil, false); got != goesOn {
		t.Errorf("%q, want %q", got, goesOn)
	}
}
