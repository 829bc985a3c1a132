package governance

import (
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Event may move a plan into another phase.
type Event string

// Events of the table.
const (
	// EventIgnore means that spec.action is Ignore.
	EventIgnore Event = "Ignore"
	// EventDraft means that a plan must be computed, for the first time or again.
	EventDraft Event = "Draft"
	// EventRetry is a request to compute the plan again.
	EventRetry Event = "Retry"
	// EventLocked means that another plan holds the profile.
	EventLocked Event = "Locked"
	// EventMissing means that the cluster lacks a requirement.
	EventMissing Event = "Missing"
	// EventRefused means that the plan could not be computed, or must not be executed.
	EventRefused Event = "Refused"
	// EventNothing means that the plan changes nothing.
	EventNothing Event = "Nothing"
	// EventDrafted means that the plan has changes.
	EventDrafted Event = "Drafted"
	// EventApproved means that exactly this plan is approved.
	EventApproved Event = "Approved"
	// EventScheduled means that exactly this plan is approved, but its window is closed, or a
	// required profile is not in effect.
	EventScheduled Event = "Scheduled"
	// EventExpired means that the approval was not given, or not used, in time.
	EventExpired Event = "Expired"
	// EventFailed means that an item failed while failurePolicy is Abort, or that the plan must not
	// continue.
	EventFailed Event = "Failed"
	// EventDone means that the execution ended without errors.
	EventDone Event = "Done"
	// EventDoneWithErrors means that the execution ended with failed items.
	EventDoneWithErrors Event = "DoneWithErrors"
	// EventDrift means that another writer changed a target.
	EventDrift Event = "Drift"
	// EventReverted means that the drift ended.
	EventReverted Event = "Reverted"
	// EventRevertedWithErrors means that the drift of a plan with failed items ended.
	EventRevertedWithErrors Event = "RevertedWithErrors"
)

// Transition is one row of the table.
type Transition struct {
	From []v1alpha1.Phase
	On   Event
	To   v1alpha1.Phase
	// When describes in words when the event happens.
	When string
}

// Phases returns all phases, in the order of a plan's life.
func Phases() []v1alpha1.Phase {
	return []v1alpha1.Phase{
		v1alpha1.PhasePending, v1alpha1.PhaseDrafting, v1alpha1.PhasePrerequisiteFailed, v1alpha1.PhaseReviewRequired,
		v1alpha1.PhaseScheduled, v1alpha1.PhaseInProgress, v1alpha1.PhaseCompleted, v1alpha1.PhaseCompletedWithErrors, v1alpha1.PhaseFailed,
		v1alpha1.PhaseDrifted, v1alpha1.PhaseExpired, v1alpha1.PhaseIgnored,
	}
}

func allBut(some ...v1alpha1.Phase) []v1alpha1.Phase {
	return slices.DeleteFunc(Phases(), func(phase v1alpha1.Phase) bool { return slices.Contains(some, phase) })
}

// Table returns the state machine. Nothing else changes the phase of a plan.
func Table() []Transition {
	only := func(phases ...v1alpha1.Phase) []v1alpha1.Phase { return phases }
	return []Transition{
		{allBut(v1alpha1.PhaseIgnored), EventIgnore, v1alpha1.PhaseIgnored,
			"spec.action is Ignore; applied changes stay, and are not watched any more"},
		{allBut(v1alpha1.PhaseDrafting), EventDraft, v1alpha1.PhaseDrafting,
			"the plan is new or retried, its spec changed, its approval was withdrawn, or the cluster now has everything that the plan needs"},
		{allBut(v1alpha1.PhaseInProgress, v1alpha1.PhaseIgnored), EventRetry, v1alpha1.PhasePending,
			"a user posts to the subresource retry"},
		{only(v1alpha1.PhaseDrafting, v1alpha1.PhaseReviewRequired, v1alpha1.PhaseScheduled, v1alpha1.PhaseInProgress, v1alpha1.PhaseCompleted,
			v1alpha1.PhaseCompletedWithErrors, v1alpha1.PhaseDrifted), EventLocked, v1alpha1.PhaseFailed,
			"another active plan holds the profile, or took it over"},
		{only(v1alpha1.PhaseDrafting, v1alpha1.PhaseReviewRequired, v1alpha1.PhaseScheduled, v1alpha1.PhaseInProgress, v1alpha1.PhaseCompleted,
			v1alpha1.PhaseCompletedWithErrors, v1alpha1.PhaseDrifted), EventMissing, v1alpha1.PhasePrerequisiteFailed,
			"the cluster lacks something that the profile needs, or lost it"},
		{only(v1alpha1.PhaseDrafting), EventRefused, v1alpha1.PhaseFailed,
			"the cluster refuses what the plan would write, or it cannot be computed"},
		{only(v1alpha1.PhaseDrafting), EventNothing, v1alpha1.PhaseCompleted,
			"the targets already have the values of the plan"},
		{only(v1alpha1.PhaseDrafting), EventDrafted, v1alpha1.PhaseReviewRequired,
			"the plan is computed; it cannot be approved while it would take fields from other field managers and onConflict is Block"},
		{only(v1alpha1.PhaseReviewRequired, v1alpha1.PhaseScheduled), EventApproved, v1alpha1.PhaseInProgress,
			"exactly this plan is approved, by as many people as spec.approvals says, its window is open, and the profiles of spec.requires are in effect"},
		{only(v1alpha1.PhaseReviewRequired), EventScheduled, v1alpha1.PhaseScheduled,
			"it is approved in the same way, but its window is closed, or a profile of spec.requires is not in effect"},
		{only(v1alpha1.PhaseReviewRequired, v1alpha1.PhaseScheduled, v1alpha1.PhaseInProgress), EventExpired, v1alpha1.PhaseExpired,
			"it was not approved within spec.expiresAfter, or not executed before spec.expires, or spec.expires passed before all items had begun"},
		{only(v1alpha1.PhaseInProgress), EventFailed, v1alpha1.PhaseFailed,
			"an item failed and failurePolicy is Abort, a target differs from what was reviewed, or the approver lacks rights"},
		{only(v1alpha1.PhaseInProgress), EventDone, v1alpha1.PhaseCompleted,
			"all items are applied and healthy"},
		{only(v1alpha1.PhaseInProgress), EventDoneWithErrors, v1alpha1.PhaseCompletedWithErrors,
			"all items were tried, some failed, and failurePolicy is Continue"},
		{only(v1alpha1.PhaseCompleted, v1alpha1.PhaseCompletedWithErrors), EventDrift, v1alpha1.PhaseDrifted,
			"another writer changed a field that the plan set"},
		{only(v1alpha1.PhaseDrifted), EventReverted, v1alpha1.PhaseCompleted,
			"the targets are again as the plan says"},
		{only(v1alpha1.PhaseDrifted), EventRevertedWithErrors, v1alpha1.PhaseCompletedWithErrors,
			"the targets are again as the plan says, and items of the plan had failed"},
	}
}

// Next returns the phase after an event. An empty phase counts as Pending. It returns an error for
// an event that the phase does not handle.
func Next(phase v1alpha1.Phase, event Event) (v1alpha1.Phase, error) {
	if phase == "" {
		phase = v1alpha1.PhasePending
	}
	for _, row := range Table() {
		if row.On == event && slices.Contains(row.From, phase) {
			return row.To, nil
		}
	}
	return phase, fmt.Errorf("a plan in phase %s does not handle the event %s", phase, event)
}

// Done reports whether an item was applied or needed no change.
func Done(state v1alpha1.ItemState) bool {
	return state == v1alpha1.ItemCompleted || state == v1alpha1.ItemSkipped
}

// Awaits reports whether a plan in a phase waits for its window.
func Awaits(phase v1alpha1.Phase) bool {
	return phase == v1alpha1.PhaseReviewRequired || phase == v1alpha1.PhaseScheduled || phase == v1alpha1.PhaseInProgress
}

// Active reports whether a plan in a phase holds its profile.
func Active(phase v1alpha1.Phase) bool {
	switch phase {
	case v1alpha1.PhaseDrafting, v1alpha1.PhaseReviewRequired, v1alpha1.PhaseScheduled, v1alpha1.PhaseInProgress, v1alpha1.PhaseCompleted,
		v1alpha1.PhaseCompletedWithErrors, v1alpha1.PhaseDrifted:
		return true
	default:
		return false
	}
}
