package chain

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// Seen is the state of a chain that the caller of Forget has read: etcd's revisions of the last
// writes, 0 for missing records.
type Seen struct {
	// Head is the revision of the chain's head.
	Head int64
	// Version is the revision of the chain's version.
	Version int64
	// Inventory is the revision of the chain's inventory.
	Inventory int64
}

// SeenHead returns etcd's revision of the last write of a chain's head, or 0 if there is no head.
// It also works for an unreadable head.
func (s *Heads) SeenHead(ctx context.Context, name string) (int64, error) {
	stored, err := store.Get(ctx, s.kv, s.keys.Head(name))
	if err != nil {
		return 0, fmt.Errorf("reading the head of extension %q: %w", name, err)
	}
	return stored.ModRevision, nil
}

// Forget deletes the head of a chain with its numbers and history, and reports whether it did. If a
// record was written since it was seen, Forget does nothing.
//
// Forget writes the chain version, so that a concurrent create starts again. It deletes neither the
// version nor the inventory. A deleted record has revision 0, so a writer that began at revision 0
// would succeed. Forget empties the inventory instead.
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
