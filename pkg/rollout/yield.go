package rollout

import (
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
)

// yielded are the fields of an object that are left to others so far.
func (o *object) yielded() []string {
	if o.memo == nil {
		return nil
	}
	return o.memo.Yielded
}

// yieldedNow tells who was left which fields that had been ours before.
func (o *object) yieldedNow(left managedfields.Yields) []Event {
	for _, known := range o.yielded() {
		delete(left, known)
	}
	if len(left) == 0 {
		return nil
	}
	return []Event{o.event("Yielded", "left fields of %s: %s", o.step.ID, left)}
}
