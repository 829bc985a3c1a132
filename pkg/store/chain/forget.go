package chain

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// Seen is the state of a chain that the user of Forget has read: etcd's revisions of the last
// writes, 0 for missing records.
type Seen struct {
	// Head of the chain.
	Head int64
	// Version, of its revisions.
	Version int64
	// Inventory is the revision of the chain's inventory.
	Inventory int64
}

// SeenHead returns etcd's revision of the last write of the head of a chain, 0 when there
// is none. One that cannot be read has one too.
func (s *Heads) SeenHead(ctx context.Context, name string) (int64, error) {
	stored, err := store.Get(ctx, s.kv, s.keys.Head(name))
	if err != nil {
		return 0, fmt.Errorf("reading the head of extension %q: %w", name, err)
	}
	return stored.ModRevision, nil
}

// Forget deletes the head of a chain with its numbers and history, and reports whether it did. It
// does nothing if a record was written since it was seen.
//
// It writes the chain version, so that a concurrent create starts over. It deletes neither the
// version nor the inventory: they would be at revision 0 again, and a writer that started from 0
// would succeed. It empties the inventory instead.
func (s *Heads) Forget(ctx context.Context, name string, seen Seen) (bool, error) {
	unchanged := func(key string, at int64) clientv3.Cmp {
		return clientv3.Compare(clientv3.ModRevision(key), "=", at)
	}
	head, inventory := s.keys.Head(name), s.keys.Inventory(name)
	writes := []clientv3.Op{clientv3.OpDelete(head), clientv3.OpPut(s.keys.ChainVersion(name), store.ChainVersionRecord())}
	if seen.Inventory != 0 {
		empty, err := encodeInventory(name, Inventory{})
		if err != nil {
			return false, err
		}
		writes = append(writes, clientv3.OpPut(inventory, string(empty)))
	}
	done, err := s.kv.Txn(ctx).
		If(unchanged(head, seen.Head), unchanged(s.keys.ChainVersion(name), seen.Version), unchanged(inventory, seen.Inventory)).
		Then(writes...).
		Commit()
	if err != nil {
		return false, fmt.Errorf("forgetting extension %q: %w", name, err)
	}
	return done.Succeeded, nil
}
