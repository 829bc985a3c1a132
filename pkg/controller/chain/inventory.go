package chain

import (
	"context"
	"maps"
	"slices"
	"strings"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// Inventories stores the inventory of each chain.
type Inventories interface {
	Load(ctx context.Context, chain string) (store.Inventory, int64, error)
	Save(ctx context.Context, chain string, inventory store.Inventory, modRevision int64) (int64, error)
}

// ledger is the inventory of one chain during one pass. It has the version that was read, and so
// notices another writer.
type ledger struct {
	inventories Inventories
	chain       string
	revision    int64
	inventory   rollout.Inventory
	// cluster identifies the cluster of the objects, see store.Inventory. It is saved together with
	// the objects.
	cluster string
}

func openLedger(ctx context.Context, inventories Inventories, chain string) (*ledger, error) {
	stored, revision, err := inventories.Load(ctx, chain)
	if err != nil {
		return nil, err
	}
	return &ledger{inventories: inventories, chain: chain, revision: revision, inventory: rev.Inventory(stored), cluster: stored.Cluster}, nil
}

// save stores the inventory. It fails if another writer stored it since the last read or write.
func (l *ledger) save(ctx context.Context, inventory rollout.Inventory) error {
	stored := rev.StoredInventory(inventory)
	stored.Cluster = l.cluster
	revision, err := l.inventories.Save(ctx, l.chain, stored, l.revision)
	if err != nil {
		return err
	}
	l.revision, l.inventory = revision, inventory
	return nil
}

// forget drops the entries and latches of revisions that no longer exist. A user who removes a
// finalizer by hand means that the objects of the revision must not be deleted. forget returns the
// objects that were given up.
func (l *ledger) forget(revisions []olmv1alpha1.ClusterExtensionRevision) (rollout.Inventory, []manifest.ID) {
	numbers, keys := identities(revisions)
	out := rollout.Inventory{
		Entries: maps.Clone(l.inventory.Entries), Reached: maps.Clone(l.inventory.Reached), Deletions: l.inventory.Deletions, Repairs: l.inventory.Repairs,
		Levels: maps.Clone(l.inventory.Levels),
	}
	var given []manifest.ID
	for id, entry := range out.Entries {
		if !numbers[entry.Revision] {
			given = append(given, id)
			delete(out.Entries, id)
		}
	}
	maps.DeleteFunc(out.Reached, func(key string, _ int) bool { return !keys[key] })
	maps.DeleteFunc(out.Levels, func(key string, _ bool) bool { return !keys[key] })
	slices.SortFunc(given, func(a, b manifest.ID) int { return strings.Compare(a.String(), b.String()) })
	return out, given
}

// outlived reports whether the inventory names a revision that no longer exists. It runs in every
// pass, and copies nothing.
func (l *ledger) outlived(revisions []olmv1alpha1.ClusterExtensionRevision) bool {
	numbers, keys := identities(revisions)
	for _, entry := range l.inventory.Entries {
		if !numbers[entry.Revision] {
			return true
		}
	}
	for key := range l.inventory.Reached {
		if !keys[key] {
			return true
		}
	}
	for key := range l.inventory.Levels {
		if !keys[key] {
			return true
		}
	}
	return false
}

func identities(revisions []olmv1alpha1.ClusterExtensionRevision) (numbers map[int64]bool, keys map[string]bool) {
	numbers, keys = make(map[int64]bool, len(revisions)), make(map[string]bool, len(revisions))
	for i := range revisions {
		numbers[revisions[i].Spec.Revision] = true
		keys[string(revisions[i].UID)] = true
	}
	return numbers, keys
}

// holder returns an object that has the content of a revision, or nil. Of several objects it always
// returns the same one.
func (l *ledger) holder(number int64) *manifest.ID {
	var first *manifest.ID
	for id, entry := range l.inventory.Entries {
		if entry.Revision == number && (first == nil || id.String() < first.String()) {
			first = &id
		}
	}
	return first
}
