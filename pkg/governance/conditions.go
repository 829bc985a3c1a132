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

// Reasons returns all reasons of a plan's conditions.
func Reasons() []string {
	return []string{
		ReasonPending, ReasonDrafting, ReasonReviewRequired, ReasonWaitingForWindow, ReasonWaitingForProfile,
		ReasonFrozen, ReasonInProgress, ReasonCompleted, ReasonCompletedWithErrors, ReasonItemFailed,
		ReasonMissingDependency, ReasonPlanStale, ReasonPlanRefused, ReasonConflict, ReasonProfileLocked,
		ReasonApproverLacksRights, ReasonDrifted, ReasonExpired, ReasonIgnored, ReasonPrerequisitesMet,
		ReasonNoDrift, ReasonLogicChanged, ReasonUpToDate, ReasonRestored, ReasonUnknown,
		ReasonTargetsHealthy, ReasonTargetUnhealthy,
	}
}

// Situation has the inputs of the conditions.
type Situation struct {
	Phase v1alpha1.Phase
	// Reason replaces the usual reason of the phase; empty for the usual reason.
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

type outlook struct {
	phase                          v1alpha1.Phase
	reason                         string
	ready, active, drifted, stalls metav1.ConditionStatus
	prerequisites                  metav1.ConditionStatus
}

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

// health returns the condition Healthy. It is known while the plan is Completed, or while an
// operator reports a problem.
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
