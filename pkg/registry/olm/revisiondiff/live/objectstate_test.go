package live

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// TestObjectState is what is said of one object of revision 2.
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

// TestRepaired reads events of the engine, and of nobody else.
func TestRepaired(t *testing.T) {
	for name, tc := range map[string]struct{ component, reason, message, want string }{
		"repaired":  {"penstock", "Repaired", "repaired ConfigMap a/x: .data.k was changed by kubectl-edit", "ConfigMap a/x|.data.k was changed by kubectl-edit"},
		"recreated": {"penstock", "Recreated", "created ConfigMap a/x again, which someone had deleted", "ConfigMap a/x|someone had deleted it"},
		"other":     {"penstock", "Yielded", "repaired ConfigMap a/x: y", ""},
		"foreign":   {"somebody", "Repaired", "repaired ConfigMap a/x: y", ""},
		"garbled":   {"penstock", "Repaired", "something else", ""},
	} {
		t.Run(name, func(t *testing.T) {
			id, what, ok := repaired(&corev1.Event{Reason: tc.reason, Message: tc.message, Source: corev1.EventSource{Component: tc.component}})
			got := ""
			if ok {
				got = id + "|" + what
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
