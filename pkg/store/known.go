package store

import "k8s.io/utils/lru"

// Known remembers records as they were last seen, those used last. Its records may be older
// than what is stored: it is for transactions that demand what they rest on, and for what
// stays true of a record. A nil one remembers nothing.
type Known struct{ records *lru.Cache }

// NewKnown returns one for a number of records.
func NewKnown(size int) *Known { return &Known{records: lru.New(size)} }

// Get returns a record as it was last seen.
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

// Set remembers a record, unless a later version of it is known; of one that does not exist
// nothing.
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
