package store

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// CompanionWrite is a change of a second record in the transaction that writes a record. Both
// records are written, or neither.
type CompanionWrite struct {
	Key string
	// Change returns the new content of the record, or nil for no change. It is called again if
	// another writer was faster. If it returns an error, neither record is written.
	Change func(found Value) (record []byte, err error)
	// Known caches the record; nil caches nothing. The first transaction uses the cached record
	// without a read, and requires that it is current.
	Known *Known
}

// Beginning returns the record's part of the first transaction, from the cache or a read.
func (b CompanionWrite) Beginning(ctx context.Context, kv clientv3.KV) (Part, error) {
	if known, ok := b.Known.Get(b.Key); ok {
		// A change that fails on an outdated record may be possible on the current record.
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

// Saw caches the record that a transaction has found.
func (b CompanionWrite) Saw(found Value) { b.Known.Set(b.Key, found) }

// Wrote caches the record that a transaction has written, at a revision of etcd.
func (b CompanionWrite) Wrote(part Part, revision int64) {
	if part.record != nil {
		b.Known.Set(b.Key, Value{Bytes: part.record, ModRevision: revision})
	}
}

// Onto returns the record's part of a transaction that requires the found version.
func (b CompanionWrite) Onto(found Value) (Part, error) {
	record, err := b.Change(found)
	return Part{key: b.Key, at: found.ModRevision, record: record}, err
}

// Part holds the condition and the write of one record in a transaction.
type Part struct {
	key    string
	at     int64
	record []byte
}

// If returns the condition that the record is unchanged.
func (p Part) If() clientv3.Cmp { return clientv3.Compare(clientv3.ModRevision(p.key), "=", p.at) }

// Then returns the write of the record, or nothing if it does not change.
func (p Part) Then() []clientv3.Op {
	if p.record == nil {
		return nil
	}
	return []clientv3.Op{clientv3.OpPut(p.key, string(p.record))}
}

// Else returns a read of the record, for Holds.
func (p Part) Else() clientv3.Op { return clientv3.OpGet(p.key) }

// Holds reports whether a found record has the required version.
func (p Part) Holds(now Value) bool { return now.ModRevision == p.at }
