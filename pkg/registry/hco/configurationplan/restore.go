package configurationplan

import (
	"fmt"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/governance"
)

// isRestored reports whether a plan has restored the state before a run, and its status belongs to
// the current spec.
func isRestored(plan *hco.ConfigurationPlan) bool {
	return plan.Spec.RestoreRun != 0 && plan.Status.Phase == hco.PhaseCompleted && plan.Status.InputsHash == inputs(plan)
}

// endRestore unsets spec.restoreRun if a write of spec ends the restore.
func endRestore(plan, stored *hco.ConfigurationPlan) {
	spec, err := externalSpec(&plan.Spec)
	if err != nil {
		return // the conversion cannot fail
	}
	before, err := externalSpec(&stored.Spec)
	if err == nil && governance.RestoreEnds(before, spec, isRestored(stored)) {
		plan.Spec.RestoreRun = 0
	}
}

// restoreWarnings warns the author of a spec whether the plan applies the spec or restores an
// earlier state.
func restoreWarnings(plan, stored *hco.ConfigurationPlan) []string {
	run := stored.Spec.RestoreRun
	switch {
	case run == 0:
		return nil
	case plan.Spec.RestoreRun == 0 && plan.Spec.Action == hco.ActionIgnore:
		return []string{fmt.Sprintf("the plan no longer restores the state before run %d: spec.restoreRun is unset", run)}
	case plan.Spec.RestoreRun == 0:
		return []string{fmt.Sprintf("the plan no longer restores the state before run %d: spec.restoreRun is unset, and the plan is computed from the profile; review and approve it", run)}
	case plan.Spec.RestoreRun == run && plan.Spec.Action != hco.ActionApply:
		return []string{fmt.Sprintf("spec.restoreRun is %d: the plan restores the state before that run instead of applying the profile; set 0 to apply the profile", run)}
	}
	return nil
}
