package store

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// CompanionWrite is a record that changes in the transaction that writes another one: either both
// are written, or none of them.
type CompanionWrite struct {
	Key string
	// Change returns what the record becomes, nil for what it is. It is called again when
	// another writer was faster. Its error keeps both from being written.
	Change func(found Value) (record []byte, err error)
	// Known remembers the record as it was last seen; nil remembers nothing. A transaction
	// begins with that, without a read: it demands that the record still is so.
	Known *Known
}

// Beginning returns the record's part of a first transaction: by what is known of it, or
// else read.
func (b CompanionWrite) Beginning(ctx context.Context, kv clientv3.KV) (Part, error) {
	if known, ok := b.Known.Get(b.Key); ok {
		// A companion that an earlier record does not allow can be possible with the present one.
		if part, err := b.Onto(known); err == nil {
			return part, nil
		}
	}
	found, err := Get(ctx, kv, b.Key)
	if err != nil {
		return Part{}, err
	}
	b.Known.Set(b.Key, found)
	return b.Onto(found)
}

// Saw remembers the record as a transaction has found it.
func (b CompanionWrite) Saw(found Value) { b.Known.Set(b.Key, found) }

// Wrote remembers the record as a transaction has left it, at a revision of etcd.
func (b CompanionWrite) Wrote(part Part, revision int64) {
	if part.record != nil {
		b.Known.Set(b.Key, Value{Bytes: part.record, ModRevision: revision})
	}
}

// Onto returns the part of the record in a transaction, as it was found.
func (b CompanionWrite) Onto(found Value) (Part, error) {
	record, err := b.Change(found)
	return Part{key: b.Key, at: found.ModRevision, record: record}, err
}

// Part has the conditions of a transaction on one record, and its write to it.
type Part struct {
	key    string
	at     int64
	record []byte
}

// If demands that the record is as it was found.
func (p Part) If() clientv3.Cmp { return clientv3.Compare(clientv3.ModRevision(p.key), "=", p.at) }

// Then writes the record; it is nothing when that stays.
func (p Part) Then() []clientv3.Op {
	if p.record == nil {
		return nil
	}
	return []clientv3.Op{clientv3.OpPut(p.key, string(p.record))}
}

// Else reads the record, for Holds.
func (p Part) Else() clientv3.Op { return clientv3.OpGet(p.key) }

// Holds reports whether the record that is found now is the required one.
func (p Part) Holds(now Value) bool { return now.ModRevision == p.at }
