package chain

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// Inventories loads and saves the inventories of chains. An inventory has one
// writer: the caller that saves says which state they started from, and is refused when
// that is not the present one. So a leader that was replaced without noticing
// cannot undo what its successor has written.
type Inventories struct {
	kv   clientv3.KV
	keys store.Keys
	// unreadable is told of inventories that cannot be read; nil is told nothing.
	unreadable *store.Unreadable
}

// NewInventories returns the inventories below an etcd prefix.
func NewInventories(kv clientv3.KV, prefix string) *Inventories {
	return &Inventories{kv: kv, keys: store.NewKeys(prefix)}
}

// Noting has records that cannot be read noted. It returns the same inventories.
func (s *Inventories) Noting(unreadable *store.Unreadable) *Inventories {
	s.unreadable = unreadable
	return s
}

// FencedError says that another writer has changed the inventory since it was
// loaded or saved last. The caller's state is out of date: the caller must stop
// writing to the chain's objects, load again, and find out whether they still
// lead.
type FencedError struct {
	Chain string
	// ModRevision that the caller started from, and the one found; 0 is an
	// inventory that does not exist.
	ModRevision, Found int64
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("the inventory of extension %q was changed by another writer: it is at etcd revision %d, not %d", e.Chain, e.Found, e.ModRevision)
}

// Load returns the inventory of a chain and the etcd revision of its last write,
// to be handed to Save. One that was never saved is empty, at 0. Inventories are
// not deleted when they get empty: 0 would come back, and with it a writer who
// started from it.
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

// Save stores the inventory in place of the one at modRevision, which came from
// Load or from Save, and returns the new one. When the inventory has changed
// since, nothing is written and the error is a *FencedError.
//
// An inventory that is stored already is not written again. That holds no matter who
// stored it: after an error the caller does not know whether the write was done,
// and may just save again.
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

// ForgetAll empties the inventories of all chains, also those that cannot be read,
// and returns of how many. It is for a store that is not of the time of its
// cluster, before anybody works with it.
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
