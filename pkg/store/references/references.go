// Package references computes the packs that the records of a store refer to, and the packs that
// must be kept. The collector, fsck and tests share it.
//
// Four kinds of record refer to a pack: a revision, for its objects; a plan, for the manifests to
// apply and the state before; a run of a plan, which outlives the plan and can be restored; and a
// delta, for its base. A reservation keeps a pack for a record that is being written. History rows
// name the pack of a deleted revision without keeping it: no user can read the pack through them.
package references

import (
	"maps"
	"slices"

	"github.com/penstock-project/penstock/pkg/store"
)

// Set holds, for each referenced root, the keys of the records that refer to it.
type Set map[string][]string

// MaxNamed bounds the remembered records of each root.
const MaxNamed = 3

// Add records that a record refers to packs. It ignores empty roots.
func (s Set) Add(key string, roots ...string) {
	for _, root := range roots {
		if root == "" {
			continue
		}
		if len(s[root]) < MaxNamed {
			s[root] = append(s[root], key)
		}
	}
}

// Decode returns the roots of the packs that a record refers to. The error is a
// *store.DamagedError or a *store.FormatError.
type Decode func(key string, record []byte) (roots []string, err error)

// Decoders holds the decoders by kind (see Keys.KindOf). Records of other kinds refer to no pack.
type Decoders map[string]Decode

// Of returns the references of a record.
func (d Decoders) Of(keys store.Keys, key string, record []byte) ([]string, error) {
	decode := d[keys.KindOf(key)]
	if decode == nil {
		return nil, nil
	}
	return decode(key, record)
}

// Pack is a pack with its base and reservation.
type Pack struct {
	Root string
	// Base is the root of the pack's base; empty for none.
	Base string
	// Reserved is true if a record that refers to the pack is being written.
	Reserved bool
}

// Kept returns the roots to keep: referenced or reserved packs, and the base of every existing
// pack. A new record may still refer to an unreferenced delta, so its base is deleted only after
// it.
func Kept(packs []Pack, referred Set) map[string]bool {
	there, kept := make(map[string]bool, len(packs)), make(map[string]bool, len(packs))
	for _, pack := range packs {
		there[pack.Root] = true
	}
	for _, pack := range packs {
		if pack.Reserved || len(referred[pack.Root]) > 0 {
			kept[pack.Root] = true
		}
		if there[pack.Base] {
			kept[pack.Base] = true
		}
	}
	return kept
}

// Missing returns the referenced roots that do not exist, sorted.
func Missing(packs []Pack, referred Set) []string {
	there := make(map[string]bool, len(packs))
	for _, pack := range packs {
		there[pack.Root] = true
	}
	var missing []string
	for _, root := range slices.Sorted(maps.Keys(referred)) {
		if !there[root] {
			missing = append(missing, root)
		}
	}
	return missing
}
