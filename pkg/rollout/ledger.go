package rollout

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// ledger is the inventory of a chain during a pass. The inventory changes only through its methods.
type ledger struct {
	owner string
	store func(context.Context, Inventory) error
	// inventory is the current inventory; saved is the stored inventory.
	inventory, saved Inventory
}

func (l *ledger) record(id manifest.ID, entry Entry) { l.inventory.Entries[id] = entry }

// drop removes an object that is deleted, or does not belong to the chain any more.
func (l *ledger) drop(id manifest.ID) { delete(l.inventory.Entries, id) }

func (l *ledger) reach(layer string, stages int) { l.inventory.Reached[layer] = stages }

func (l *ledger) charge(deletions []Deletion) { l.inventory.Deletions = deletions }

// doom marks objects as allowed to be deleted.
func (l *ledger) doom(objects []*object) {
	for _, o := range objects {
		entry := *o.memo
		entry.Doomed = true
		o.memo = &entry
		l.record(o.step.ID, entry)
	}
}

// save stores the inventory if it has changed.
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
