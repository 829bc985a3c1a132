package governance

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Restorable reports whether a run wrote the target of an item, so that the earlier state can be
// restored. Runs of versions that did not record refusals count every started item.
func Restorable(item v1alpha1.PlanRunItem) bool {
	if item.StartedAt == nil || item.Action == v1alpha1.ItemNone {
		return false // the run did not come that far, or did nothing
	}
	// Refused before it was written: what is there is somebody else's.
	return item.Applied == nil || *item.Applied
}

// Restored returns the message about the state that a plan has restored.
func Restored(run int64) string {
	return fmt.Sprintf("what there was before run %d is restored", run)
}

// RestoreEnds reports whether a change of a plan ends the restore that its spec asks for, so that
// it leads to the profile again. A restore is done once, as an approval counts once:
//
//   - other options are about the profile,
//   - a user who sets the plan aside does not want the restore,
//   - once the targets are restored, a user who asks for the plan anew (action DryRun, as in its
//     file, or retry) asks for the profile.
//
// Done is true if status says that the former spec is restored.
func RestoreEnds(before, spec v1alpha1.ConfigurationPlanSpec, done bool) bool {
	switch {
	case before.RestoreRun == 0 || spec.RestoreRun != before.RestoreRun:
		return false
	case !apiequality.Semantic.DeepEqual(before.Options, spec.Options), spec.Action == v1alpha1.ActionIgnore:
		return true
	default:
		return done && spec.Action == v1alpha1.ActionDryRun && before.Action != spec.Action
	}
}
