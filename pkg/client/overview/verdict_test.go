package overview

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func said(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: "because"}
}

func TestRevisionVerdict(t *testing.T) {
	succeeded, ready := said(v1alpha1.ConditionSucceeded, metav1.ConditionTrue, "Succeeded"), said(v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready")
	held := said(v1alpha1.ConditionHeld, metav1.ConditionTrue, "RolledBack")
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
		"failing":     {"a person is needed", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{said(v1alpha1.ConditionFailing, metav1.ConditionTrue, "Collision")}, Stopped},
		"frozen":      {"somebody has to end the freeze", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{said(v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Frozen"), held}, Stopped},
		"held":        {"a rollback goes on while it holds the owner", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{held}, Going},
		"held, done":  {"and is done while it does", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{held, succeeded, ready}, Done},
		"rolled back": {"another revision took its place", v1alpha1.LifecycleStateActive, 1, []metav1.Condition{said(v1alpha1.ConditionRolledBack, metav1.ConditionTrue, "ProgressDeadlineExceeded")}, Stopped},
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
