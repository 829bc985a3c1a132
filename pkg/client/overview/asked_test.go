package overview

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// TestAsk: an extension needs attention if only a user can help, or if it failed and is retried. An
// extension that continues does not.
func TestAsk(t *testing.T) {
	of := func(outcome status.Outcome, revisions ...*v1alpha1.ClusterExtensionRevision) *extension.Extension {
		read := &extension.Extension{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}}
		read.Status = status.Of(status.Facts{Extension: read, Outcome: outcome, Revisions: revisions})
		return read
	}
	rolling := revision("web", 1, v1alpha1.LifecycleStateActive, is(v1alpha1.ConditionProgressing, metav1.ConditionTrue, "RollingOut"))
	failing := rolling.DeepCopy()
	failing.Status.Phases = []v1alpha1.PhaseStatus{{Name: "deploy", Objects: 1, Failing: []v1alpha1.ObjectFailure{{Reason: "KindNotServed", Message: "there is none"}}}}
	well := revision("web", 1, v1alpha1.LifecycleStateActive, is(v1alpha1.ConditionSucceeded, metav1.ConditionTrue, "RolledOut"), is(v1alpha1.ConditionAvailable, metav1.ConditionTrue, "RolledOut"))
	older := of(status.Outcome{Result: status.Denied})
	older.Generation++
	for name, tc := range map[string]struct {
		reason         string
		read           *extension.Extension
		want           string
		needs, retried bool
	}{
		"new":       {"nobody has looked at it", &extension.Extension{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}}, "Pending", false, false},
		"older":     {"status is of another spec", older, "Pending", false, false},
		"name":      {"nothing changes before a person acts", of(status.Outcome{Result: status.NameTaken}), "NameTaken", true, false},
		"pull":      {"it is tried again, and has failed", of(status.Outcome{Result: status.PullFailed}), "PullFailed", true, true},
		"range":     {"it is tried again, and only a person can help", of(status.Outcome{Result: status.Unresolved}), "Unresolved", true, false},
		"pending":   {"OLM v1 says of a rollout that it is tried again", of(status.Outcome{Result: status.Settled}, failing), "RollingOut", false, false},
		"rolling":   {"it goes on", of(status.Outcome{Result: status.Settled}, rolling), "RollingOut", false, false},
		"well":      {"it is as it should be", of(status.Outcome{Result: status.Settled}, well), "Succeeded", false, false},
		"upgrade":   {"what the spec asks for was never reached, whatever is installed", of(status.Outcome{Result: status.PullFailed}, well), "PullFailed", true, true},
		"no answer": {"catalogs are not known yet", of(status.Outcome{Result: status.Pending}), "Pending", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := Ask(tc.read)
			if got.Reason != tc.want || got.Needs != tc.needs || got.Retried != tc.retried {
				t.Errorf("%s: %+v, want %s, %t, %t", tc.reason, got, tc.want, tc.needs, tc.retried)
			}
		})
	}
}

func TestAnnounced(t *testing.T) {
	for message, want := range map[string]string{
		"no right": "no right", "lacks rights; grant them with: \nkind: ClusterRole\n": "lacks rights; grant them with", "first\nsecond": "first",
	} {
		if got := Announced(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
