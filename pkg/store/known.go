package store

import "k8s.io/utils/lru"

// Known caches the most recently used records. A cached record may be outdated. So it is for
// transactions that compare its version, and for facts that never change. A nil Known caches
// nothing.
type Known struct{ records *lru.Cache }

// NewKnown returns a cache for a number of records.
func NewKnown(size int) *Known { return &Known{records: lru.New(size)} }

// Get returns the cached record.
func (k *Known) Get(key string) (Value, bool) {
	if k == nil {
		return Value{}, false
	}
	found, ok := k.records.Get(key)
	if !ok {
		return Value{}, false
	}
	return found.(Value), true
}

// Set caches a record unless a later version is cached. If the record does not exist, Set removes
// it from the cache.
func (k *Known) Set(key string, value Value) {
	if k == nil {
		return
	}
	if !value.Exists() {
		k.records.Remove(key)
		return
	}
	if known, ok := k.Get(key); ok && known.ModRevision > value.ModRevision {
		return
	}
	k.records.Add(key, value)
}
