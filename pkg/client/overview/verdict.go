package overview

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Verdict is the outcome of a rollout or a run, which may still continue.
type Verdict int

// These are the verdicts.
const (
	// Going continues by itself.
	Going Verdict = iota
	// Done: the requested state is reached.
	Done
	// Stopped needs a user, or was given up.
	Stopped
)

// RevisionVerdict returns the verdict on the rollout of a revision, with a reason for Stopped. Status
// of an older generation is ignored.
func RevisionVerdict(revision *v1alpha1.ClusterExtensionRevision) (verdict Verdict, reason string) {
	switch {
	case revision.DeletionTimestamp != nil:
		return Stopped, "it is being deleted"
	case revision.Spec.LifecycleState == v1alpha1.LifecycleStateArchived:
		return Stopped, "it is archived"
	case revision.Spec.LifecycleState == v1alpha1.LifecycleStatePaused:
		return Stopped, "it is paused"
	case !Observed(revision):
		return Going, ""
	}
	if back := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionRolledBack); back != nil && back.Status == metav1.ConditionTrue {
		return Stopped, "it was rolled back: " + back.Message
	}
	if Is(revision, v1alpha1.ConditionSucceeded) && Is(revision, v1alpha1.ConditionReady) {
		return Done, ""
	}
	// A rollback holds the owner of the extension, but its rollout continues.
	if found := NeedsPerson(revision); found != nil && found.Type != v1alpha1.ConditionHeld {
		return Stopped, found.Reason + ": " + found.Message
	}
	return Going, ""
}

// PlanVerdict returns the verdict on the run of a plan, with a reason for Stopped.
func PlanVerdict(plan *hcov1alpha1.ConfigurationPlan) (verdict Verdict, reason string) {
	status := &plan.Status
	switch {
	case plan.DeletionTimestamp != nil:
		return Stopped, "it is being deleted"
	case status.ObservedGeneration < plan.Generation:
		return Going, ""
	}
	switch status.Phase {
	case hcov1alpha1.PhaseCompleted:
		return Done, ""
	case hcov1alpha1.PhaseFailed, hcov1alpha1.PhaseCompletedWithErrors, hcov1alpha1.PhasePrerequisiteFailed, hcov1alpha1.PhaseDrifted, hcov1alpha1.PhaseExpired, hcov1alpha1.PhaseIgnored:
		return Stopped, string(status.Phase) + ": " + status.Message
	default:
		return Going, ""
	}
}
