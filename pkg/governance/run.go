package governance

import "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"

// Restorable tells whether a run wrote the target of an item, so that what was there
// before can be restored. Runs of versions that did not record refusals count every
// item that was started.
func Restorable(item v1alpha1.PlanRunItem) bool {
	if item.StartedAt == nil || item.Action == v1alpha1.ItemNone || item.Action == v1alpha1.ItemDelete {
		return false // the run did not come that far, or did nothing
	}
	// Refused before it was written: what is there is somebody else's.
	return item.Applied == nil || *item.Applied
}
