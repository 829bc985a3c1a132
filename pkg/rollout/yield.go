package rollout

import (
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
)

// yielded returns the fields of the object that are recorded as left to other managers.
func (o *object) yielded() []string {
	if o.memo == nil {
		return nil
	}
	return o.memo.Yielded
}

// yieldedNow returns events for fields that the chain owned and now leaves to other managers.
func (o *object) yieldedNow(left managedfields.Yields) []Event {
	for _, known := range o.yielded() {
		delete(left, known)
	}
	if len(left) == 0 {
		return nil
	}
	return []Event{o.event("Yielded", "left fields of %s: %s", o.step.ID, left)}
}
