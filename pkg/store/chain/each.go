package chain

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/penstock-project/penstock/pkg/store"
)

// chainPage bounds the chain records in one read. At most a third of them are inventories, the only
// records that may be large.
const chainPage = 100

// Each calls a function with the head and the inventory of every chain that has a head. Without an
// inventory record, the inventory is empty. Each reads many records at a time, and ends at the
// first error.
func (s *Heads) Each(ctx context.Context, do func(Head, Inventory) error) error {
	records := store.Below(s.keys.Chains())
	records.Most = chainPage
	// The records of a chain are adjacent, and the head is first.
	var head *Head
	var inventory Inventory
	end := func() error {
		if head == nil {
			return nil
		}
		ended := *head
		head = nil
		return do(ended, inventory)
	}
	err := records.Each(ctx, s.kv, func(record *mvccpb.KeyValue) error {
		key := string(record.Key)
		if name, is := s.keys.HeadOf(key); is {
			if err := end(); err != nil {
				return err
			}
			found, err := s.decode(name, store.Value{Bytes: record.Value, ModRevision: record.ModRevision})
			head, inventory = &found, Inventory{}
			return err
		}
		name, is := s.keys.InventoryOf(key)
		if !is || head == nil || head.Name != name {
			return nil
		}
		var err error
		if inventory, err = DecodeInventory(key, record.Value); err != nil {
			return s.unreadable.Told(key, record.Value, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return end()
}
