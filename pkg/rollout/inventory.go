package rollout

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// Inventory lists the objects of a chain in the target cluster: every object the engine wrote or
// was about to write, and how far each layer has come. Create-only objects are not in it. An object
// that is not in it is never deleted, except a Shared one that the manifest asks to delete.
type Inventory struct {
	Entries map[manifest.ID]Entry
	// Reached is the number of stages reached, by layer key. It only grows.
	Reached map[string]int
	// Deletions are the recent charges of the budget, oldest first.
	Deletions []Deletion
	// Repairs are the newest repairs of changes by others, the newest last.
	Repairs []RepairRecord
	// Levels holds the keys of the layers whose stages are ordered by install level. Reached counts
	// these stages. So the order is fixed and stored when the first stage is reached.
	Levels map[string]bool
}

// Entry is one object of the inventory.
type Entry struct {
	// Version is the API version with which the object was written.
	Version string
	// UID of the object. Empty is an intent: the object was about to be created or adopted, and the
	// cluster must be read to learn whether that happened.
	UID types.UID
	// Revision is the revision whose content the object has.
	Revision int64
	// Digest of the manifest that was applied last.
	Digest manifest.Digest
	// ManagedEntry is the digest of our entry in managedFields after the last
	// apply (see observe.Entry).
	ManagedEntry string
	// Generation and ResourceVersion of the last check that found the object right.
	Generation      int64
	ResourceVersion string
	// Rank is the position of the object's stage: teardown goes from the highest
	// to the lowest.
	Rank int
	// Yielded are the fields of the manifest that are left to other managers, sorted (see
	// manifest.FieldPath).
	Yielded []string
	// Doomed is true for an object that may be deleted: the budget was charged with it, or a user
	// acknowledged it.
	Doomed bool
	// Adopted is true for an object that existed before, outside of any installed extension (see
	// observe.Observation.Installed).
	Adopted bool
	// Refused is the number of the newer revision whose update of the object the server refuses,
	// although it would create a new object; 0 is for none (see makesRoom).
	Refused int64
	// Finished is the outcome of a Job that removes itself; empty for all else.
	Finished observe.Outcome
}

// equal compares two entries by value.
func (e Entry) equal(other Entry) bool {
	return e.Version == other.Version && e.UID == other.UID && e.Revision == other.Revision && e.Digest == other.Digest &&
		e.ManagedEntry == other.ManagedEntry && e.Generation == other.Generation && e.ResourceVersion == other.ResourceVersion &&
		e.Rank == other.Rank && e.Doomed == other.Doomed && e.Adopted == other.Adopted && e.Refused == other.Refused && e.Finished == other.Finished && slices.Equal(e.Yielded, other.Yielded)
}

// Intent reports whether it is unknown if the object was written. An absent Shared object that was
// to be deleted has such an entry, too.
func (e Entry) Intent() bool { return e.UID == "" }

// Entry returns the entry of an object, or nil.
func (i Inventory) Entry(id manifest.ID) *Entry {
	if entry, ok := i.Entries[id]; ok {
		return &entry
	}
	return nil
}

// Ref returns the address of an object of the inventory.
func (i Inventory) Ref(id manifest.ID) manifest.Ref { return i.Entries[id].ref(id) }

func (e Entry) ref(id manifest.ID) manifest.Ref {
	return manifest.Ref{ID: id, Version: e.Version, Digest: e.Digest}
}

// Unlisted returns the objects of an inventory that no layer lists, whether its stage was reached
// or not, the highest rank first: the order of deletion.
func (i Inventory) Unlisted(layers []Layer) []manifest.ID {
	listed := map[manifest.ID]bool{}
	for _, layer := range layers {
		for _, stg := range layer.Stages {
			for _, step := range stg.Steps {
				listed[step.ID] = true
			}
		}
	}
	var unlisted []manifest.ID
	for id := range i.Entries {
		if !listed[id] {
			unlisted = append(unlisted, id)
		}
	}
	slices.SortFunc(unlisted, func(a, b manifest.ID) int {
		return cmp.Or(i.Entries[b].Rank-i.Entries[a].Rank, a.Compare(b))
	})
	return unlisted
}

// clone returns a copy that can be changed without changing the original.
func (i Inventory) clone() Inventory {
	out := Inventory{Entries: maps.Clone(i.Entries), Reached: maps.Clone(i.Reached), Deletions: slices.Clone(i.Deletions), Repairs: slices.Clone(i.Repairs), Levels: maps.Clone(i.Levels)}
	if out.Entries == nil {
		out.Entries = map[manifest.ID]Entry{}
	}
	if out.Reached == nil {
		out.Reached = map[string]int{}
	}
	return out
}

// equal compares two inventories by value.
func (i Inventory) equal(other Inventory) bool {
	return maps.EqualFunc(i.Entries, other.Entries, Entry.equal) && maps.Equal(i.Reached, other.Reached) && slices.Equal(i.Deletions, other.Deletions) &&
		slices.Equal(i.Repairs, other.Repairs) && maps.Equal(i.Levels, other.Levels)
}
