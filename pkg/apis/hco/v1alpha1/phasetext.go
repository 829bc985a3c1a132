package v1alpha1

import (
	"fmt"
	"strings"
)

// PhaseText returns the phase of a plan, or the outcome of a run, for a person. restoreRun is the
// number of the run that the plan restores, or 0.
func PhaseText(phase string, restoreRun int64) string {
	if restoreRun == 0 || phase == "" {
		return phase
	}
	return fmt.Sprintf("%s (undo of run %d)", phase, restoreRun)
}

// AfterText names the profiles that a plan waits for, in a few words.
func AfterText[T ~string](profiles []T) string {
	names := make([]string, len(profiles))
	for i, name := range profiles {
		names[i] = string(name)
	}
	return "after " + strings.Join(names, ",")
}

// CurrentText returns the column CURRENT of a plan: the running item, or the reason why the plan
// waits if the phase does not show it. reason is the reason of the condition Ready. running is the
// item that is InProgress.
func CurrentText(phase, reason, running string) string {
	switch Phase(phase) {
	case PhaseInProgress:
		if reason == "" || reason == string(PhaseInProgress) {
			return running
		}
		return reason
	case PhaseReviewRequired, PhaseFailed:
		if reason == phase {
			return ""
		}
		return reason
	case PhaseCompleted:
		if reason == phase {
			return ""
		}
		return reason // in effect, but not healthy
	case PhaseScheduled:
		if strings.HasPrefix(reason, "WaitingFor") {
			return "" // another column shows when it begins
		}
		return reason
	default:
		return ""
	}
}
