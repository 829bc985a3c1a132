package live

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// TestObjectState checks the reported state of one object of revision 2.
func TestObjectState(t *testing.T) {
	ours, older, newer, intent := &rollout.Entry{Revision: 2, UID: "u"}, &rollout.Entry{Revision: 1, UID: "u"}, &rollout.Entry{Revision: 3, UID: "u"}, &rollout.Entry{Revision: 2}
	unready := probe.Verdict{Status: probe.False, Message: "0 of 1 replica available"}
	failure := func(reason string) *olm.ObjectFailure { return &olm.ObjectFailure{Reason: reason, Message: "why"} }
	for name, tc := range map[string]struct {
		reason string
		seen   objectView
		want   string
	}{
		"available":          {"it is there, and its probes pass", objectView{layer: true, entry: ours, exists: true}, "Available  "},
		"unready":            {"its probe says why", objectView{layer: true, entry: ours, exists: true, verdict: unready}, "Unready ProbeFailed 0 of 1 replica available"},
		"ready-by-now":       {"what is seen counts more than what status said of a probe", objectView{layer: true, entry: ours, exists: true, failing: failure("ProbeFailed")}, "Available  "},
		"missing":            {"somebody deleted it", objectView{layer: true, entry: ours}, "Unready Missing it is not in the cluster any more"},
		"terminating":        {"somebody deletes it", objectView{layer: true, entry: ours, exists: true, deleting: true}, "Unready Terminating it is being deleted"},
		"not-yet":            {"its turn has not come", objectView{layer: true}, "Pending  "},
		"still-older":        {"the newer content has not come", objectView{layer: true, entry: older, exists: true}, "Pending  it has the content of revision 1"},
		"intent":             {"it is being made", objectView{layer: true, entry: intent}, "Pending  it is about to be made"},
		"refused":            {"status says why it is not written", objectView{layer: true, failing: failure("Collision"), exists: true}, "Failing Collision why"},
		"superseded":         {"a newer revision has it, whatever status said", objectView{layer: true, entry: newer, exists: true, failing: failure("Collision")}, "Superseded Superseded it has the content of revision 3"},
		"unread":             {"nobody knows", objectView{layer: true, entry: ours, unread: errors.New("x")}, "Unknown NotRead the cluster does not say how it is"},
		"create-only":        {"it is nobody's, and there", objectView{layer: true, createOnly: true, exists: true}, "Available  "},
		"create-only-absent": {"it is not there yet", objectView{layer: true, createOnly: true}, "Pending  "},
		"leaving":            {"an archived revision still has it", objectView{entry: ours, exists: true}, "Leaving StillThere it still has the content of this revision"},
		"gone":               {"an archived revision has given it up", objectView{entry: newer, exists: true}, "Gone  "},
	} {
		t.Run(name, func(t *testing.T) {
			tc.seen.number = 2
			if tc.seen.verdict.Status == "" {
				tc.seen.verdict.Status = probe.True
			}
			state, reason, message := tc.seen.state()
			if got := fmt.Sprintf("%s %s %s", state, reason, message); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRepairs: an object shows its last repair.
func TestRepairs(t *testing.T) {
	id := func(name string) manifest.ID { return manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: name} }
	i := &inquiry{steps: []phased{{Ref: manifest.Ref{ID: id("x")}}, {Ref: manifest.Ref{ID: id("y")}}}}
	for n, lost := range []string{"first", "last"} {
		i.work.Inventory.Repairs = append(i.work.Inventory.Repairs, rollout.RepairRecord{ID: id("x"), Lost: lost, Last: time.Unix(int64(n), 0)})
	}
	objects := make([]v1alpha1.RevisionObjectStatus, 2)
	i.repairs(objects)
	if got := objects[0].LastRepair; got == nil || got.Message != "last" || got.Time.Unix() != 1 || objects[1].LastRepair != nil {
		t.Errorf("the last repairs are %+v and %+v", objects[0].LastRepair, objects[1].LastRepair)
	}
}
