package chain

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// Inventories loads and saves the inventories of chains. A save names its initial state, and fails
// if that is not the current state. So a replaced leader cannot undo the writes of its successor.
type Inventories struct {
	kv   clientv3.KV
	keys store.Keys
	// unreadable collects unreadable inventories; nil collects none.
	unreadable *store.Unreadable
}

// NewInventories returns the inventories below an etcd prefix.
func NewInventories(kv clientv3.KV, prefix string) *Inventories {
	return &Inventories{kv: kv, keys: store.NewKeys(prefix)}
}

// Noting sets the collection of unreadable inventories. It returns the same inventories.
func (s *Inventories) Noting(unreadable *store.Unreadable) *Inventories {
	s.unreadable = unreadable
	return s
}

// FencedError reports that another writer has changed the inventory since the caller loaded or
// saved it. The caller must stop writing the chain's objects, load again, and check whether it is
// still the leader.
type FencedError struct {
	Chain string
	// ModRevision is the caller's revision, and Found the current revision; 0 means that the
	// inventory does not exist.
	ModRevision, Found int64
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("the inventory of extension %q was changed by another writer: it is at etcd revision %d, not %d", e.Chain, e.Found, e.ModRevision)
}

// Load returns the inventory of a chain and the etcd revision of its last write, for Save. An
// inventory that was never saved is empty, at revision 0. Empty inventories are not deleted: a
// writer that started from revision 0 would then succeed.
func (s *Inventories) Load(ctx context.Context, chain string) (Inventory, int64, error) {
	if chain == "" {
		return Inventory{}, 0, errors.New("loading an inventory: the extension has no name")
	}
	key := s.keys.Inventory(chain)
	stored, err := store.Get(ctx, s.kv, key)
	if err != nil {
		return Inventory{}, 0, fmt.Errorf("loading the inventory of extension %q: %w", chain, err)
	}
	if !stored.Exists() {
		return Inventory{}, 0, nil
	}
	inv, err := DecodeInventory(key, stored.Bytes)
	if err != nil {
		return Inventory{}, 0, fmt.Errorf("loading the inventory of extension %q: %w", chain, s.unreadable.Told(key, stored.Bytes, err))
	}
	return inv, stored.ModRevision, nil
}

// Save replaces the inventory at modRevision, which Load or Save returned, and returns the new
// revision. If the inventory has changed since, it writes nothing and returns a *FencedError.
//
// If an equal inventory is already stored, by any writer, Save writes nothing. So after an error
// with an unknown result, the caller may save again.
func (s *Inventories) Save(ctx context.Context, chain string, inv Inventory, modRevision int64) (int64, error) {
	if chain == "" {
		return 0, errors.New("saving an inventory: the extension has no name")
	}
	revision, err := s.save(ctx, chain, inv, modRevision)
	var fenced *FencedError
	if err != nil && !errors.As(err, &fenced) {
		return 0, fmt.Errorf("saving the inventory of extension %q: %w", chain, err)
	}
	return revision, err
}

// ForgetAll empties the inventories of all chains, even unreadable inventories, and returns their
// number. It is for a store that is older or newer than its cluster. It must be called before the
// store is used.
func (s *Inventories) ForgetAll(ctx context.Context) (int, error) {
	found, err := s.kv.Get(ctx, s.keys.Chains(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("forgetting the inventories: %w", err)
	}
	forgotten := 0
	for _, record := range found.Kvs {
		chain, ok := s.keys.InventoryOf(string(record.Key))
		if !ok {
			continue
		}
		now, err := s.save(ctx, chain, Inventory{}, record.ModRevision)
		if err != nil {
			return forgotten, fmt.Errorf("forgetting the inventory of extension %q: %w", chain, err)
		}
		if now != record.ModRevision {
			forgotten++
		}
	}
	return forgotten, nil
}

func (s *Inventories) save(ctx context.Context, chain string, inv Inventory, modRevision int64) (int64, error) {
	record, err := encodeInventory(chain, inv)
	if err != nil {
		return 0, err
	}
	key := s.keys.Inventory(chain)
	if modRevision != 0 || !inv.Empty() {
		var others []clientv3.Cmp
		if modRevision != 0 {
			others = append(others, clientv3.Compare(clientv3.Value(key), "!=", string(record)))
		}
		revision, done, err := store.Swap(ctx, s.kv, key, record, modRevision, others...)
		if err != nil || done {
			return revision, err
		}
	}
	stored, err := store.Get(ctx, s.kv, key)
	if err != nil {
		return 0, err
	}
	found := stored.ModRevision
	if bytes.Equal(stored.Bytes, record) || found == 0 && modRevision == 0 && inv.Empty() {
		return found, nil
	}
	return 0, &FencedError{Chain: chain, ModRevision: modRevision, Found: found}
}
