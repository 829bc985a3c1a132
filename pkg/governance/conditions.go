package governance

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Reasons of conditions.
const (
	ReasonPending             = "Pending"
	ReasonDrafting            = "Drafting"
	ReasonReviewRequired      = "ReviewRequired"
	ReasonWaitingForWindow    = "WaitingForWindow"
	ReasonWaitingForProfile   = "WaitingForProfile"
	ReasonFrozen              = "Frozen"
	ReasonInProgress          = "InProgress"
	ReasonCompleted           = "Completed"
	ReasonCompletedWithErrors = "CompletedWithErrors"
	ReasonItemFailed          = "ItemFailed"
	ReasonMissingDependency   = "MissingDependency"
	ReasonPlanStale           = "PlanStale"
	ReasonPlanRefused         = "PlanRefused"
	ReasonConflict            = "FieldConflict"
	ReasonProfileLocked       = "ProfileLocked"
	ReasonApproverLacksRights = "ApproverLacksRights"
	ReasonDrifted             = "ConfigurationDrifted"
	ReasonExpired             = "ApprovalExpired"
	ReasonIgnored             = "Ignored"
	ReasonPrerequisitesMet    = "PrerequisitesMet"
	ReasonNoDrift             = "NoDrift"
	ReasonLogicChanged        = "LogicChanged"
	ReasonUpToDate            = "UpToDate"
	ReasonRestored            = "Restored"
	ReasonUnknown             = "NotLookedAtYet"
	ReasonTargetsHealthy      = "TargetsHealthy"
	ReasonTargetUnhealthy     = "TargetUnhealthy"
)

// Reason is one row of the table of reasons.
type Reason struct {
	Name    string
	Meaning string
}

// Reasons returns all reasons of a plan's conditions.
func Reasons() []Reason {
	return []Reason{
		{ReasonPending, "the plan has not been looked at yet"},
		{ReasonDrafting, "the plan is being computed"},
		{ReasonReviewRequired, "the plan waits for its approval"},
		{ReasonWaitingForWindow, "the plan is approved, and one of its items waits for the window in status.window"},
		{ReasonWaitingForProfile, "the plan is approved, and one of its items waits until the profiles of spec.requires are in effect; the message names their plans"},
		{ReasonFrozen, "the plan is being executed, and the cluster is frozen: nothing is written; the message says by whom and why"},
		{ReasonInProgress, "the plan is being executed"},
		{ReasonCompleted, "the targets are as the plan says"},
		{ReasonCompletedWithErrors, "the plan was executed, and items failed"},
		{ReasonItemFailed, "an item was refused or did not become healthy in time; the items after it are Pending"},
		{ReasonMissingDependency, "the cluster lacks something, or has a field that excludes one of the profile; the message says what to install, or to remove. The plan goes on by itself afterwards"},
		{ReasonPlanStale, "a target differs from what was reviewed, or another manager now has a field that would be taken; the message says who. All targets are checked before the first write, and each again before its own write. Retry computes the plan anew"},
		{ReasonPlanRefused, "the plan could not be computed, or the cluster refuses what it would write"},
		{ReasonConflict, "the plan waits: fields belong to others, whom the message names, and onConflict: Take takes the fields; or another plan sets them to other values, and one of the two plans must change"},
		{ReasonProfileLocked, "another active plan has the profile; the message names it"},
		{ReasonApproverLacksRights, "a user who approved the plan lacks rights for what it does"},
		{ReasonDrifted, "somebody changed a field that the plan set. Nothing is undone"},
		{ReasonExpired, "the plan was not approved within spec.expiresAfter: retry computes it anew. Or it was not executed before spec.expires: set a later time there, then the plan is computed anew and waits for another approval"},
		{ReasonIgnored, "spec.action is Ignore"},
		{ReasonPrerequisitesMet, "the cluster has what the profile needs"},
		{ReasonNoDrift, "nobody changed what the plan set"},
		{ReasonLogicChanged, "the plan would be different today; set action DryRun, or retry, to see the new one"},
		{ReasonUpToDate, "the plan would be the same today"},
		{ReasonRestored, "the plan has restored the state before one of its runs"},
		{ReasonUnknown, "not known yet"},
		{ReasonTargetsHealthy, "the operators of the targets report no problem"},
		{ReasonTargetUnhealthy, "the targets are as the plan says, and an operator reports a problem with one of them; the message quotes it"},
	}
}

// Situation has the inputs of the conditions.
type Situation struct {
	Phase v1alpha1.Phase
	// Reason of a phase that can have several; empty for its usual one.
	Reason  string
	Message string
	// Restored is true if the plan has restored an earlier state.
	Restored bool
	// Outdated is true if the plan would be different today.
	Outdated bool
	// Unhealthy has the problems that operators report about targets of a plan that is in effect;
	// empty for none.
	Unhealthy string
}

// outlook has the conditions of a phase.
type outlook struct {
	phase                          v1alpha1.Phase
	reason                         string
	ready, active, drifted, stalls metav1.ConditionStatus
	prerequisites                  metav1.ConditionStatus
}

// outlooks is the table of conditions by phase.
func outlooks() []outlook {
	const t, f, u = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	return []outlook{
		// phase, reason, Ready, ProfileActive, Drifted, Stalled, PrerequisitesMet
		{v1alpha1.PhasePending, ReasonPending, f, u, u, f, u},
		{v1alpha1.PhaseDrafting, ReasonDrafting, f, u, u, f, u},
		{v1alpha1.PhasePrerequisiteFailed, ReasonMissingDependency, f, f, u, t, f},
		{v1alpha1.PhaseReviewRequired, ReasonReviewRequired, f, f, u, f, t},
		{v1alpha1.PhaseScheduled, ReasonWaitingForWindow, f, f, u, f, t},
		{v1alpha1.PhaseInProgress, ReasonInProgress, f, f, f, f, t},
		{v1alpha1.PhaseCompleted, ReasonCompleted, t, t, f, f, t},
		{v1alpha1.PhaseCompletedWithErrors, ReasonCompletedWithErrors, f, f, f, t, t},
		{v1alpha1.PhaseFailed, ReasonItemFailed, f, f, u, t, u},
		{v1alpha1.PhaseDrifted, ReasonDrifted, f, f, t, t, t},
		{v1alpha1.PhaseExpired, ReasonExpired, f, f, u, t, t},
		{v1alpha1.PhaseIgnored, ReasonIgnored, u, u, u, f, u},
	}
}

// Conditions returns the conditions of a situation. All conditions are always present.
func Conditions(s Situation) []metav1.Condition {
	look := outlook{phase: s.Phase, reason: ReasonUnknown, ready: metav1.ConditionUnknown, active: metav1.ConditionUnknown,
		drifted: metav1.ConditionUnknown, stalls: metav1.ConditionUnknown, prerequisites: metav1.ConditionUnknown}
	for _, row := range outlooks() {
		if row.phase == s.Phase {
			look = row
		}
	}
	activeReason := look.reason
	if s.Restored && s.Phase == v1alpha1.PhaseCompleted {
		look.active, activeReason = metav1.ConditionFalse, ReasonRestored
	} else if s.Reason != "" {
		activeReason = s.Reason
	}
	if s.Reason != "" {
		look.reason = s.Reason
	}
	if s.Unhealthy != "" && s.Phase == v1alpha1.PhaseCompleted {
		look.ready, look.reason = metav1.ConditionFalse, ReasonTargetUnhealthy
	}
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	upgrade := condition(v1alpha1.ConditionUpgradeAvailable, metav1.ConditionFalse, ReasonUpToDate, "")
	if s.Outdated {
		upgrade = condition(v1alpha1.ConditionUpgradeAvailable, metav1.ConditionTrue, ReasonLogicChanged,
			"the plan would be different today; set spec.action to DryRun, or POST to the subresource retry, to see the new one")
	}
	drifted, prerequisites := ReasonNoDrift, ReasonPrerequisitesMet
	if look.drifted != metav1.ConditionFalse {
		drifted = look.reason
	}
	if look.prerequisites != metav1.ConditionTrue {
		prerequisites = look.reason
	}
	return []metav1.Condition{
		condition(v1alpha1.ConditionReady, look.ready, look.reason, s.Message),
		condition(v1alpha1.ConditionStalled, look.stalls, look.reason, s.Message),
		condition(v1alpha1.ConditionPrerequisitesMet, look.prerequisites, prerequisites, ""),
		condition(v1alpha1.ConditionProfileActive, look.active, activeReason, ""),
		condition(v1alpha1.ConditionDrifted, look.drifted, drifted, ""),
		upgrade,
		health(s),
	}
}

// health is the condition Healthy: known while a plan is in effect as a whole, or an operator
// reports a problem.
func health(s Situation) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: ReasonUnknown}
	switch {
	case s.Unhealthy != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, ReasonTargetUnhealthy, s.Unhealthy
	case s.Phase == v1alpha1.PhaseCompleted:
		condition.Status, condition.Reason = metav1.ConditionTrue, ReasonTargetsHealthy
	}
	return condition
}
