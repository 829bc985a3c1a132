package chain

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// OtherTargetError reports that the inventories belong to a different cluster than the current
// target. In the current target, the engine would create all objects again.
type OtherTargetError struct {
	// Recorded and Wanted name clusters; empty means the host.
	Recorded, Wanted string
}

func (e *OtherTargetError) Error() string {
	return fmt.Sprintf("what was rolled out is in %s, not in %s", cluster(e.Recorded), cluster(e.Wanted))
}

func cluster(name string) string {
	if name == "" {
		return "the host cluster"
	}
	return "cluster " + name
}

// maxTargetBytes bounds the name of a cluster.
const maxTargetBytes = 4 << 10

// targetFormat returns the format of the record with the name of the target cluster.
func targetFormat() store.Format {
	return store.Format{Kind: "target cluster", Magic: "PKT", Version: 1, Limit: maxTargetBytes}
}

// CheckTarget records the cluster of the inventories; empty means the host. If any inventory lists
// objects in another cluster, it returns an *OtherTargetError. With forget, it empties these
// inventories instead: their objects stay there without a record. It ignores inventories that name
// their own cluster (see Inventory.Cluster).
func (s *Inventories) CheckTarget(ctx context.Context, cluster string, forget bool) error {
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
		if err := s.forgetTargeted(ctx); err != nil {
			return err
		}
	}
	targeted, err := s.targeted(ctx, false)
	if err != nil {
		return err
	}
	if len(targeted) > 0 {
		return &OtherTargetError{Recorded: recorded, Wanted: cluster}
	}
	record, err := targetFormat().Wrap([]byte(cluster))
	if err != nil {
		return err
	}
	found, done, err := store.Swap(ctx, s.kv, key, record, stored.ModRevision)
	if err == nil && !done {
		err = fmt.Errorf("it was changed by another client at etcd revision %d", found)
	}
	if err != nil {
		return fmt.Errorf("recording which the target cluster is: %w", err)
	}
	return nil
}

// targeted returns the etcd revisions of the inventories that list objects in the recorded cluster,
// by chain. With unreadable, it includes unreadable records; otherwise they are an error.
func (s *Inventories) targeted(ctx context.Context, unreadable bool) (map[string]int64, error) {
	found, err := s.kv.Get(ctx, s.keys.Chains(), clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading the target cluster: %w", err)
	}
	targeted := map[string]int64{}
	for _, record := range found.Kvs {
		chain, ok := s.keys.InventoryOf(string(record.Key))
		if !ok {
			continue
		}
		inventory, err := DecodeInventory(string(record.Key), record.Value)
		if err != nil && !unreadable {
			return nil, err
		}
		if err != nil || len(inventory.Entries) > 0 && inventory.Cluster == "" {
			targeted[chain] = record.ModRevision
		}
	}
	return targeted, nil
}

// forgetTargeted empties the inventories of chains that do not name their target.
func (s *Inventories) forgetTargeted(ctx context.Context) error {
	targeted, err := s.targeted(ctx, true)
	if err != nil {
		return err
	}
	for chain, revision := range targeted {
		if _, err := s.save(ctx, chain, Inventory{}, revision); err != nil {
			return fmt.Errorf("forgetting the inventory of extension %q: %w", chain, err)
		}
	}
	return nil
}
