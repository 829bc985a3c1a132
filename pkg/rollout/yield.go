package rollout

import (
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
)

// yielded are the fields of an object that are left to others so far.
func (p *pass) yielded(id manifest.ID) []string { return p.inventory.Entries[id].Yielded }

// yieldedNow tells who was left which fields that had been ours before.
func (p *pass) yieldedNow(t task, left managedfields.Yields) []Event {
	for _, known := range p.yielded(t.step.ID) {
		delete(left, known)
	}
	if len(left) == 0 {
		return nil
	}
	return []Event{p.event(t, "Yielded", "left fields of %s: %s", t.step.ID, left)}
}
