package rollout

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// Inventory lists the objects of a chain in the target cluster: every object that the engine wrote
// or was about to write, and the stages that each layer has reached. It has no create-only objects.
// The engine deletes no other object, except a Shared object that the manifest asks to delete.
type Inventory struct {
	Entries map[manifest.ID]Entry
	// Reached is the number of stages that each layer has reached, by layer key. It only grows.
	Reached map[string]int
	// Deletions are the recent charges of the budget, oldest first.
	Deletions []Deletion
	// Repairs are the newest repairs of other writers' changes, the newest last.
	Repairs []RepairRecord
	// Levels holds the keys of the layers whose stages are ordered by install level. The order is
	// stored with the first stage, because Reached counts stages in this order.
	Levels map[string]bool
}

// Entry is one object of the inventory.
type Entry struct {
	// Version is the API version in which the object was written.
	Version string
	// UID of the object. An empty UID is an intent: the object was about to be created or adopted,
	// and only the cluster knows whether that happened.
	UID types.UID
	// Revision is the revision whose content the object has.
	Revision int64
	// Digest of the manifest that was applied last.
	Digest manifest.Digest
	// ManagedEntry is the digest of our entry in managedFields after the last
	// apply (see observe.Entry).
	ManagedEntry string
	// Generation and ResourceVersion of the last check that found the object as desired.
	Generation      int64
	ResourceVersion string
	// Rank is the position of the object's stage. Teardown begins with the highest rank.
	Rank int
	// Yielded are the fields of the manifest that are left to other managers, sorted (see
	// manifest.FieldPath).
	Yielded []string
	// Doomed is true for an object that may be deleted: the budget was charged for it, or a user
	// acknowledged its deletion.
	Doomed bool
	// Adopted is true for an object that existed before and was not part of an installed extension
	// (see observe.Observation.Installed).
	Adopted bool
	// Refused is the number of the newer revision to which the server refuses to update the object,
	// although it would create a new object; 0 for none (see makesRoom).
	Refused int64
	// Finished is the outcome of a Job that removes itself; empty for other objects.
	Finished observe.Outcome
}

func (e Entry) equal(other Entry) bool {
	return e.Version == other.Version && e.UID == other.UID && e.Revision == other.Revision && e.Digest == other.Digest &&
		e.ManagedEntry == other.ManagedEntry && e.Generation == other.Generation && e.ResourceVersion == other.ResourceVersion &&
		e.Rank == other.Rank && e.Doomed == other.Doomed && e.Adopted == other.Adopted && e.Refused == other.Refused && e.Finished == other.Finished && slices.Equal(e.Yielded, other.Yielded)
}

// Intent reports whether it is unknown if the object was written. An absent Shared object that was
// to be deleted also has such an entry.
func (e Entry) Intent() bool { return e.UID == "" }

// Entry returns the entry of an object, or nil.
func (i Inventory) Entry(id manifest.ID) *Entry {
	if entry, ok := i.Entries[id]; ok {
		return &entry
	}
	return nil
}

// Ref returns the reference of an object of the inventory.
func (i Inventory) Ref(id manifest.ID) manifest.Ref { return i.Entries[id].ref(id) }

func (e Entry) ref(id manifest.ID) manifest.Ref {
	return manifest.Ref{ID: id, Version: e.Version, Digest: e.Digest}
}

// Unlisted returns the objects of an inventory that no layer lists in any stage, in the order of
// deletion: the highest rank first.
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

func (i Inventory) equal(other Inventory) bool {
	return maps.EqualFunc(i.Entries, other.Entries, Entry.equal) && maps.Equal(i.Reached, other.Reached) && slices.Equal(i.Deletions, other.Deletions) &&
		slices.Equal(i.Repairs, other.Repairs) && maps.Equal(i.Levels, other.Levels)
}
