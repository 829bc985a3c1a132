package v1alpha1

import "fmt"

// PhaseText is the phase of a plan, or the outcome of a run, for people: that it undoes the
// run of a number is told beside it. 0 is none.
func PhaseText(phase string, restoreRun int64) string {
	if restoreRun == 0 || phase == "" {
		return phase
	}
	return fmt.Sprintf("%s (undo of run %d)", phase, restoreRun)
}
