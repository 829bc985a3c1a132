package v1alpha1

import (
	"fmt"
	"strings"
)

// PhaseText is the phase of a plan, or the outcome of a run, for people: that it undoes the
// run of a number is told beside it. 0 is none.
func PhaseText(phase string, restoreRun int64) string {
	if restoreRun == 0 || phase == "" {
		return phase
	}
	return fmt.Sprintf("%s (undo of run %d)", phase, restoreRun)
}

// AfterText says in a few words after which profiles a plan begins.
func AfterText[T ~string](profiles []T) string {
	names := make([]string, len(profiles))
	for i, name := range profiles {
		names[i] = string(name)
	}
	return "after " + strings.Join(names, ",")
}

// CurrentText is the column CURRENT of a plan: the item that runs, or the
// reason why the plan waits, unless the phase says it. Reason is that of its
// condition Ready, running the item that is InProgress.
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
		return reason // in effect, and not healthy
	case PhaseScheduled:
		if strings.HasPrefix(reason, "WaitingFor") {
			return "" // when it begins is told beside it
		}
		return reason
	default:
		return ""
	}
}
