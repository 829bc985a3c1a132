package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

func is(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: "because"}
}

func TestRevisionVerdict(t *testing.T) {
	succeeded, ready := is(v1alpha1.ConditionSucceeded, metav1.ConditionTrue, "Succeeded"), is(v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready")
	held := is(v1alpha1.ConditionHeld, metav1.ConditionTrue, "RolledBack")
	for name, tc := range map[string]struct {
		reason     string
		state      v1alpha1.LifecycleState
		generation int64
		conditions []metav1.Condition
		want       Verdict
	}{
		"new":         {"nothing is known yet", v1alpha1.LifecycleStateActive, 1, nil, Going},
		"done":        {"it has succeeded and is ready", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{succeeded, ready}, Done},
		"older":       {"status is of another spec", v1alpha1.LifecycleStateActive, 2, []metav1.Condition{succeeded, ready}, Going},
		"repaired":    {"it has succeeded and is not ready", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{succeeded}, Going},
		"failing":     {"a person is needed", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{is(v1alpha1.ConditionFailing, metav1.ConditionTrue, "Collision")}, Stopped},
		"frozen":      {"somebody has to end the freeze", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{is(v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Frozen"), held}, Stopped},
		"held":        {"a rollback goes on while it holds the owner", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{held}, Going},
		"held, done":  {"and is done while it does", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{held, succeeded, ready}, Done},
		"rolled back": {"another revision took its place", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{is(v1alpha1.ConditionRolledBack, metav1.ConditionTrue, "ProgressDeadlineExceeded")}, Stopped},
		"paused":      {"nothing is written", v1alpha1.LifecycleStatePaused, 1, []metav1.Condition{succeeded, ready}, Stopped},
		"archived":    {"it was given up", v1alpha1.LifecycleStateArchived, 1, nil, Stopped},
	} {
		t.Run(name, func(t *testing.T) {
			revision := &v1alpha1.ClusterExtensionRevision{}
			revision.Generation, revision.Spec.LifecycleState = tc.generation, tc.state
			revision.Status.ObservedGeneration, revision.Status.Conditions = 1, tc.conditions
			if got, why := RevisionVerdict(revision); got != tc.want || (why != "") != (tc.want == Stopped) {
				t.Errorf("%s: %d %q, want %d", tc.reason, got, why, tc.want)
			}
		})
	}
}

func TestPlanVerdict(t *testing.T) {
	for phase, want := range map[hcov1alpha1.Phase]Verdict{
		hcov1alpha1.PhaseDrafting: Going, hcov1alpha1.PhaseInProgress: Going, hcov1alpha1.PhaseReviewRequired: Going,
		hcov1alpha1.PhaseCompleted: Done, hcov1alpha1.PhaseCompletedWithErrors: Stopped, hcov1alpha1.PhaseFailed: Stopped, hcov1alpha1.PhaseIgnored: Stopped,
	} {
		plan := &hcov1alpha1.ConfigurationPlan{}
		plan.Status.Phase = phase
		if got, _ := PlanVerdict(plan); got != want {
			t.Errorf("%s: %d, want %d", phase, got, want)
		}
	}
}

// TestPlanWaits: a plan that waits for its window says until when, also between two items.
func TestPlanWaits(t *testing.T) {
	for _, phase := range []hcov1alpha1.Phase{hcov1alpha1.PhaseScheduled, hcov1alpha1.PhaseInProgress} {
		plan := &hcov1alpha1.ConfigurationPlan{}
		plan.Name, plan.Status.Phase, plan.Status.Message = "a", phase, "its window opens at noon"
		if got := PlanLines(plan)[0].Text; got != "a: "+string(phase) {
			t.Errorf("%s: %q", phase, got)
		}
		plan.Status.Conditions = []metav1.Condition{{Type: hcov1alpha1.ConditionReady, Reason: "WaitingForWindow"}}
		if got := PlanLines(plan)[0].Text; got != "a: "+string(phase)+", its window opens at noon" {
			t.Errorf("%s: %q", phase, got)
		}
	}
}

// TestLog: without a terminal what is new is printed once, with the time, and once a minute
// that nothing is.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourAuto, func(string) string { return "" })
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	view := NewView(s, began)
	lines := []screen.Line{{Glyph: screen.Working, Text: "a-1"}, {Glyph: screen.Waiting, Indent: 2, Text: "later"}}
	view.Show(lines, began)
	view.Show(lines, after(1))
	view.Beat(lines, after(59))
	view.Beat(lines, after(60))
	view.Beat(lines, after(90))
	view.Show([]screen.Line{{Glyph: screen.Good, Text: "a-1"}, {Glyph: screen.Good, Indent: 2, Text: "later"}}, after(125))
	want := "    0s  ◎ a-1\n 1m00s  · still a-1\n 2m05s  ✓ a-1\n 2m05s    ✓ later\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestElapsed(t *testing.T) {
	var all []string
	for _, d := range []time.Duration{400 * time.Millisecond, 59 * time.Second, 65 * time.Second, 3 * time.Hour} {
		all = append(all, Elapsed(d))
	}
	if got := strings.Join(all, " "); got != "0s 59s 1m05s 3h00m" {
		t.Error(got)
	}
}
