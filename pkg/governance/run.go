package governance

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Restorable reports whether a run wrote the target of an item, so that the earlier state can be
// restored. In runs of versions that did not record refusals, every started item counts.
func Restorable(item v1alpha1.PlanRunItem) bool {
	if item.StartedAt == nil || item.Action == v1alpha1.ItemNone {
		return false // the item did not begin, or needed no change
	}
	// If Applied is false, the write was refused, and another writer has set the target.
	return item.Applied == nil || *item.Applied
}

// Restored returns the message of a plan that has restored an earlier state.
func Restored(run int64) string {
	return fmt.Sprintf("what there was before run %d is restored", run)
}

// RestoreEnds reports whether a change of a plan ends the restore in its spec, so that the plan
// applies the profile again. A restore is done once. It ends when
//
//   - options change, because they are about the profile,
//   - the action becomes Ignore,
//   - the targets are restored and the action becomes DryRun again, as in the plan's file.
//
// done is true if status reports that the earlier spec is restored.
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
