package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxUnreadable bounds the recorded records.
const maxUnreadable = 100

// Unreadable collects unreadable records. Callers that read records add them. Before it answers, it
// reads them from etcd, and drops records that were deleted or written since.
type Unreadable struct {
	kv clientv3.KV

	mu    sync.Mutex
	found map[string]unreadable
}

type unreadable struct {
	value [sha256.Size]byte
	why   string
}

// NewUnreadable returns an empty collection.
func NewUnreadable(kv clientv3.KV) *Unreadable {
	return &Unreadable{kv: kv, found: map[string]unreadable{}}
}

// Note adds a key whose value could not be read, and reports whether it is new. A nil receiver does
// nothing.
func (u *Unreadable) Note(key string, value []byte, why error) bool {
	if u == nil {
		return false
	}
	sum := sha256.Sum256(value)
	u.mu.Lock()
	defer u.mu.Unlock()
	before, known := u.found[key]
	if known && before.value == sum || !known && len(u.found) >= maxUnreadable {
		return false
	}
	u.found[key] = unreadable{value: sum, why: why.Error()}
	return true
}

// Told works like Note, for a caller that reads a record: it adds the key if err is a *DamagedError
// or *FormatError. It returns err.
func (u *Unreadable) Told(key string, value []byte, err error) error {
	var damaged *DamagedError
	var format *FormatError
	if errors.As(err, &damaged) || errors.As(err, &format) {
		u.Note(key, value, err)
	}
	return err
}

// Record is an unreadable record.
type Record struct {
	// Key is the key of the record in etcd. Why is the reason why it is unreadable.
	Key, Why string
}

// List returns the records that are still unreadable, by key: their value is unchanged, or etcd
// does not answer.
func (u *Unreadable) List(ctx context.Context) []Record {
	u.mu.Lock()
	var keys []string
	for key := range u.found {
		keys = append(keys, key)
	}
	u.mu.Unlock()
	slices.Sort(keys)
	var records []Record
	for _, key := range keys {
		stored, err := Get(ctx, u.kv, key)
		if why, ok := u.still(key, stored, err); ok {
			records = append(records, Record{Key: key, Why: why})
		}
	}
	return records
}

// still reports whether a record is still unreadable. It drops a record that was changed or
// deleted.
func (u *Unreadable) still(key string, stored Value, failed error) (string, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	found, ok := u.found[key]
	if ok && failed == nil && (!stored.Exists() || sha256.Sum256(stored.Bytes) != found.value) {
		delete(u.found, key)
		return "", false
	}
	return found.why, ok
}

// Check returns an error that names the unreadable records, or nil.
func (u *Unreadable) Check(ctx context.Context) error {
	records := u.List(ctx)
	if len(records) == 0 {
		return nil
	}
	var lines []string
	for _, record := range records {
		lines = append(lines, fmt.Sprintf("%s: %s", record.Key, record.Why))
	}
	return fmt.Errorf("%d records of the store cannot be read; their extensions and profiles are left as they are, everything else continues: %s", len(records), strings.Join(lines, "; "))
}
