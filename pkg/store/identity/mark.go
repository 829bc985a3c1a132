package identity

import (
	"fmt"
	"strconv"
)

// These are the keys of a mark in the data of a ConfigMap.
const (
	markStoreID   = "storeID"
	markHighWater = "highWater"
	markFormat    = "format"
	markEpoch     = "epoch"
	markMoved     = "moved"
)

// Mark is the host cluster's witness of a store: its identity and its high-water mark.
type Mark struct {
	// StoreID is the store's identity.
	StoreID string
	// HighWater is an etcd revision that the store has reached.
	HighWater int64
	// Format is the layout of the store.
	Format int
	// Epoch is the number of restores of the store.
	Epoch int
	// Moved is the digest of the snapshot that an installation with an empty store restores at
	// first. It is empty afterwards, and without a snapshot.
	Moved string
}

// Raised returns the mark with a higher high-water mark, and whether it is higher. A mark never
// decreases, and an unchanged mark is not written.
func (m Mark) Raised(highWater int64) (Mark, bool) {
	if highWater <= m.HighWater {
		return m, false
	}
	m.HighWater, m.Moved = highWater, ""
	return m, true
}

// Encode returns the mark as data of a ConfigMap.
func (m Mark) Encode() map[string]string {
	data := map[string]string{
		markStoreID:   m.StoreID,
		markHighWater: strconv.FormatInt(m.HighWater, 10),
		markFormat:    strconv.Itoa(m.Format),
	}
	if m.Epoch > 0 {
		data[markEpoch] = strconv.Itoa(m.Epoch)
	}
	if m.Moved != "" {
		data[markMoved] = m.Moved
	}
	return data
}

// DecodeMark reads the data of a ConfigMap. It ignores unknown keys. An unreadable mark is an
// error, and never counts as missing: without a mark, an empty store would count as a first start.
func DecodeMark(data map[string]string) (Mark, error) {
	mark := Mark{StoreID: data[markStoreID], Moved: data[markMoved]}
	if mark.StoreID == "" {
		return Mark{}, fmt.Errorf("reading the witness of the store: it has no %q", markStoreID)
	}
	var err error
	if mark.HighWater, err = strconv.ParseInt(data[markHighWater], 10, 64); err != nil || mark.HighWater < 0 {
		return Mark{}, fmt.Errorf("reading the witness of the store: %q is %q, want an etcd revision, which is a whole number", markHighWater, data[markHighWater])
	}
	if mark.Format, err = strconv.Atoi(data[markFormat]); err != nil || mark.Format < 1 {
		return Mark{}, fmt.Errorf("reading the witness of the store: %q is %q, want a whole number from 1", markFormat, data[markFormat])
	}
	if text, ok := data[markEpoch]; ok {
		if mark.Epoch, err = strconv.Atoi(text); err != nil || mark.Epoch < 0 {
			return Mark{}, fmt.Errorf("reading the witness of the store: %q is %q, want a whole number from 0", markEpoch, text)
		}
	}
	return mark, nil
}
