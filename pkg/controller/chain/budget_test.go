package chain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/validation"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// TestFrozenStatus: the condition about the freeze has the author and the reason of the freeze. No
// other condition has them.
func TestFrozenStatus(t *testing.T) {
	freeze := &rollout.Freeze{Author: "alice", Reason: "the year ends"}
	held := report(rollout.PhaseReport{Failures: []rollout.Failure{failure(rollout.ReasonFrozen, false)}}, false)
	done := report(rollout.PhaseReport{Applied: 1, Available: 1}, true)
	cases := map[string]struct {
		reason string
		found  finding
		change []func(*olmv1alpha1.ClusterExtensionRevision)
		want   string
	}{
		"held up":  {"it waits", finding{layer: held, newest: true, freeze: freeze}, nil, "False/Frozen frozen by alice: the year ends; nothing is written"},
		"complete": {"it has nothing to do", finding{layer: done, newest: true, freeze: freeze}, nil, "True/Soaking"},
		"deleted": {"the teardown waits too", finding{leaving: []rollout.Failure{failure(rollout.ReasonFrozen, false)}, freeze: freeze},
			[]func(*olmv1alpha1.ClusterExtensionRevision){deleted}, "True/Frozen frozen by alice: the year ends; 1 object is still to go"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := revision(tc.change...)
			r.Spec.SuccessDelaySeconds = 60
			got := meta.FindStatusCondition(status(r, tc.found, noon).Conditions, olmv1alpha1.ConditionProgressing)
			if text := string(got.Status) + "/" + got.Reason + " " + got.Message; !strings.HasPrefix(text, tc.want) {
				t.Errorf("%s: Progressing is %q, want %q", tc.reason, text, tc.want)
			}
		})
	}
}

// TestBudgetAsks: the status of the revision whose objects would be deleted has the exact command
// to acknowledge that.
func TestBudgetAsks(t *testing.T) {
	s := set(t, numbered(2), numbered(1, state(olmv1alpha1.LifecycleStateArchived)))
	f := failure(rollout.ReasonBudget, true)
	f.Acknowledge = "25-0123456789"
	s.ledger.inventory.Entries[f.ID] = rollout.Entry{Revision: 1}
	s.report.Leaving, s.report.Acknowledge = []rollout.Failure{f}, "25-0123456789"
	got := meta.FindStatusCondition(status(&s.revisions[1], s.finding(1), noon).Conditions, olmv1alpha1.ConditionStalled)
	want := "kubectl annotate --overwrite cer argocd-1 penstock.dev/acknowledge-deletion=25-0123456789"
	if got.Status != metav1.ConditionTrue || got.Reason != rollout.ReasonBudget || !strings.HasSuffix(got.Message, want) {
		t.Errorf("Stalled is %s/%s: %s", got.Status, got.Reason, got.Message)
	}
	taken(t, *got, olmv1alpha1.AcknowledgeDeletionAnnotation, "25-0123456789")
	if diff := cmp.Diff("", s.report.Leaving[0].Message[len(f.Message):]); diff != "" {
		t.Errorf("the report was changed:\n%s", diff)
	}
}

// TestBudgetAsksWhole: status keeps the complete command, also if names are long or another failure
// needs a user. The API accepts only the token in that command.
func TestBudgetAsksWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(id *manifest.ID)
		others []rollout.Failure
	}{
		"LongNames": {change: func(id *manifest.ID) { id.Namespace, id.Name = strings.Repeat("s", 63), strings.Repeat("n", 253) }},
		"LongestKind": {change: func(id *manifest.ID) {
			id.Group, id.Kind, id.Name = strings.Repeat("g", 253), strings.Repeat("K", 63), strings.Repeat("n", 253)
		}},
		"Beside": {change: func(*manifest.ID) {}, others: []rollout.Failure{failure(rollout.ReasonRejected, true)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t, numbered(2), numbered(1, state(olmv1alpha1.LifecycleStateArchived)))
			f := failure(rollout.ReasonBudget, true)
			f.Acknowledge = "25-0123456789"
			tc.change(&f.ID)
			f.Message = "is one of 25 objects that would be deleted although nobody deletes their revision; 20 may go within 1h0m0s, and 0 did: acknowledge it as 25-0123456789"
			s.report.Leaving, s.report.Acknowledge = append(tc.others, f), "25-0123456789"
			for _, failure := range s.report.Leaving {
				s.ledger.inventory.Entries[failure.ID] = rollout.Entry{Revision: 1}
			}
			got := meta.FindStatusCondition(status(&s.revisions[1], s.finding(1), noon).Conditions, olmv1alpha1.ConditionStalled)
			if len(got.Message) > olmv1alpha1.MaxMessageLength {
				t.Errorf("a message of %d bytes", len(got.Message))
			}
			taken(t, *got, olmv1alpha1.AcknowledgeDeletionAnnotation, "25-0123456789")
		})
	}
}

// taken fails unless the API accepts the answer that a condition requests.
func taken(t *testing.T, asking metav1.Condition, annotation, answer string) {
	t.Helper()
	var stored, answered olm.ClusterExtensionRevision
	stored.Status.Conditions = []metav1.Condition{asking}
	answered.Status, answered.Annotations = stored.Status, map[string]string{annotation: answer}
	for _, err := range validation.ValidateRevisionUpdate(&answered, &stored) {
		if strings.Contains(err.Field, "annotations") {
			t.Errorf("what status asks for is refused: %v", err)
		}
	}
}

// TestBudgetOfAChain: the engine gets three lists from the chain: objects of revisions, objects
// that a failed upgrade added, and objects whose deletion a user reviewed in a diff.
func TestBudgetOfAChain(t *testing.T) {
	configMaps := func(names ...string) func(*olmv1alpha1.ClusterExtensionRevision) {
		var objects []string
		for _, name := range names {
			objects = append(objects, "v1 ConfigMap "+name+" sha256:1")
		}
		return listing(objects...)
	}
	archived := state(olmv1alpha1.LifecycleStateArchived)
	one := numbered(1, archived, succeeded, configMaps("a", "b", "c"))
	failed := numbered(2, archived, configMaps("a", "b", "new"))
	digest := rev.RemovedDigest(rev.Removed(references.Of(one), references.Of(numbered(3, configMaps("a")))), types.UID("uid-3"))
	three := numbered(3, configMaps("a"), func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.UID = "uid-3"
		r.Annotations = map[string]string{olmv1alpha1.AcknowledgeDeletionAnnotation: "9-other, " + digest}
	})
	id := func(name string) manifest.ID {
		for _, revision := range []*olmv1alpha1.ClusterExtensionRevision{one, failed} {
			for _, ref := range references.Of(revision) {
				if ref.Name == name {
					return ref.ID
				}
			}
		}
		t.Fatalf("there is no %s", name)
		return manifest.ID{}
	}
	budget := set(t, one, failed, three).budget()
	if listed, known := budget.Listed(1); !known || len(listed) != 3 {
		t.Errorf("revision 1 lists %v", listed)
	}
	if _, known := budget.Listed(7); known {
		t.Error("nobody knows what revision 7 listed")
	}
	for name, tc := range map[string]struct {
		reason           string
		object           string
		revision         int64
		undone, reviewed bool
	}{
		"Removed":      {"the diff of 1 and 3 showed it", "b", 1, false, true},
		"TakenOver":    {"a failed upgrade had taken it over, and revision 1 had it", "c", 2, false, true},
		"Kept":         {"the diff did not show it", "a", 1, false, false},
		"Added":        {"by the failed upgrade alone", "new", 2, true, false},
		"OfItself":     {"what revision 3 has had itself is another set", "b", 3, false, false},
		"OfALater":     {"and of later ones", "b", 4, false, false},
		"WithoutFirst": {"before the first that succeeded nothing is undone", "new", 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := budget.Undone(id(tc.object), tc.revision); got != tc.undone {
				t.Errorf("%s: undone is %t", tc.reason, got)
			}
			if got := budget.Reviewed(id(tc.object), tc.revision); got != tc.reviewed {
				t.Errorf("%s: reviewed is %t", tc.reason, got)
			}
		})
	}
	newer := numbered(4, configMaps("a", "b"))
	if set(t, one, failed, three, newer).budget().Reviewed(id("c"), 1) {
		t.Error("another revision is the newest: nobody has read its diff")
	}
}
