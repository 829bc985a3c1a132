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

// maxUnreadable is how many records are remembered. More say nothing new.
const maxUnreadable = 100

// Unreadable remembers which records could not be read. It is told by each caller that reads
// records, and asks etcd before it answers: a record that is gone, or was written
// since, is forgotten. While there is none, nobody asks etcd.
type Unreadable struct {
	kv clientv3.KV

	mu    sync.Mutex
	found map[string]unreadable
}

type unreadable struct {
	value [sha256.Size]byte
	why   string
}

// NewUnreadable returns one that knows of none.
func NewUnreadable(kv clientv3.KV) *Unreadable {
	return &Unreadable{kv: kv, found: map[string]unreadable{}}
}

// Note remembers that the value of a key could not be read, and tells whether that is
// new. On a nil receiver it does nothing.
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

// Told is Note for the caller that reads a record: when the error says that the value of the key is
// damaged, or of a format that is not known, it is noted. It returns the error.
func (u *Unreadable) Told(key string, value []byte, err error) error {
	var damaged *DamagedError
	var format *FormatError
	if errors.As(err, &damaged) || errors.As(err, &format) {
		u.Note(key, value, err)
	}
	return err
}

// Record is a record that cannot be read.
type Record struct {
	// Key of the record in etcd, and why it cannot be read.
	Key, Why string
}

// List returns the records that still cannot be read, by key: those whose value is as
// it was. One that etcd gives no answer about is one of them.
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

// still forgets a record whose value is another one, or gone.
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

// Check is nil, or names the records that cannot be read.
func (u *Unreadable) Check(ctx context.Context) error {
	records := u.List(ctx)
	if len(records) == 0 {
		return nil
	}
	var lines []string
	for _, record := range records {
		lines = append(lines, fmt.Sprintf("%s: %s", record.Key, record.Why))
	}
	return fmt.Errorf("%d records of the store cannot be read; what they belong to is left as it is, everything else goes on: %s", len(records), strings.Join(lines, "; "))
}
