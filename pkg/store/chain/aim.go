package chain

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// AimedElsewhereError says that the inventories are about another cluster than the
// one that is at hand: in this one nothing of what they list is known, and all of it
// would be made anew.
type AimedElsewhereError struct {
	// Recorded and Wanted name clusters; empty is the host.
	Recorded, Wanted string
}

func (e *AimedElsewhereError) Error() string {
	return fmt.Sprintf("what was rolled out is in %s, not in %s", cluster(e.Recorded), cluster(e.Wanted))
}

func cluster(name string) string {
	if name == "" {
		return "the host cluster"
	}
	return "cluster " + name
}

// targetFormat is that of the record of the target cluster: its name.
func targetFormat() store.Format {
	return store.Format{Kind: "target cluster", Magic: "PKT", Version: 1}
}

// Aim says which cluster the inventories are about from now on; empty is the host.
// While any of them lists objects in another cluster that is an
// *AimedElsewhereError, unless they are to be forgotten: what is there stays then,
// and nobody knows of it.
func (s *Inventories) Aim(ctx context.Context, cluster string, forget bool) error {
	key := s.keys.Target()
	stored, err := store.Get(ctx, s.kv, key)
	if err != nil {
		return fmt.Errorf("finding out where the target cluster is: %w", err)
	}
	recorded := ""
	if stored.Exists() {
		body, err := targetFormat().Unwrap(key, stored.Bytes)
		if err != nil {
			return err
		}
		recorded = string(body)
	}
	if recorded == cluster {
		return nil
	}
	if forget {
		if _, err := s.ForgetAll(ctx); err != nil {
			return err
		}
	}
	idle, err := s.allEmpty(ctx)
	if err != nil {
		return err
	}
	if !idle {
		return &AimedElsewhereError{Recorded: recorded, Wanted: cluster}
	}
	found, done, err := store.Swap(ctx, s.kv, key, targetFormat().Wrap([]byte(cluster)), stored.ModRevision)
	if err == nil && !done {
		err = fmt.Errorf("it was changed by somebody else at etcd revision %d", found)
	}
	if err != nil {
		return fmt.Errorf("recording which the target cluster is: %w", err)
	}
	return nil
}

// allEmpty is true when no inventory lists anything.
func (s *Inventories) allEmpty(ctx context.Context) (bool, error) {
	found, err := s.kv.Get(ctx, s.keys.Chains(), clientv3.WithPrefix())
	if err != nil {
		return false, fmt.Errorf("looking what is in the target cluster: %w", err)
	}
	for _, record := range found.Kvs {
		if _, ok := s.keys.InventoryOf(string(record.Key)); !ok {
			continue
		}
		inventory, err := decodeInventory(string(record.Key), record.Value)
		if err != nil {
			return false, err
		}
		if len(inventory.Entries) > 0 {
			return false, nil
		}
	}
	return true, nil
}
