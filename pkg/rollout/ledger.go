package rollout

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// ledger is the inventory of a chain during a pass, and the one place where it changes.
type ledger struct {
	owner string
	store func(context.Context, Inventory) error
	// inventory is the known inventory, saved the stored one.
	inventory, saved Inventory
}

// record keeps the entry of an object.
func (l *ledger) record(id manifest.ID, entry Entry) { l.inventory.Entries[id] = entry }

// drop forgets an object: it is gone, or not the chain's any more.
func (l *ledger) drop(id manifest.ID) { delete(l.inventory.Entries, id) }

// reach notes how many stages of a layer are reached.
func (l *ledger) reach(layer string, stages int) { l.inventory.Reached[layer] = stages }

// charge replaces the deletions that the budget was charged with.
func (l *ledger) charge(deletions []Deletion) { l.inventory.Deletions = deletions }

// doom notes that objects may go.
func (l *ledger) doom(objects []*object) {
	for _, o := range objects {
		entry := *o.memo
		entry.Doomed = true
		o.memo = &entry
		l.record(o.step.ID, entry)
	}
}

// save stores the inventory when it differs from what is stored.
func (l *ledger) save(ctx context.Context) error {
	if l.inventory.equal(l.saved) {
		return nil
	}
	snapshot := l.inventory.clone()
	if err := l.store(ctx, snapshot); err != nil {
		return fmt.Errorf("saving the inventory of %s: %w", l.owner, err)
	}
	l.saved = snapshot
	return nil
}
