package rollout

import (
	"cmp"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// turn is a set of objects that are removed together, when all turns before it are gone.
type turn struct {
	ids []manifest.ID
	// early is true for a turn that precedes the order of ranks.
	early bool
}

// turns returns the order of removal. Ranks order it, the highest first, with one exception: custom
// resources whose definitions are unclaimed too, and then definitions that are deleted with their
// instances, precede all other objects. Their controller is among those, and only while it runs does it
// finish their finalizers. (The API server serves a definition and its instances until the last instance
// is gone.) Admission objects precede both, as in the order of stages: a webhook that does not answer
// would refuse the deletion of the custom resources, and nothing could ever be removed.
//
// The ids are sorted by rank already.
func (r *removal) turns(ids, unclaimed []manifest.ID) []turn {
	isInstance := func(id manifest.ID) bool {
		return id.Group != "" && slices.ContainsFunc(unclaimed, func(d manifest.ID) bool { return d.DefinesKindsOf(id.Group) })
	}
	early := func(id manifest.ID) bool { return isInstance(id) || r.takesInstances(id) }
	const (
		admission = iota
		instances
		definitions
		rest
	)
	class := func(id manifest.ID) int {
		switch {
		case r.takesInstances(id):
			return definitions
		case isInstance(id):
			return instances
		case id.Group == "admissionregistration.k8s.io":
			return admission
		default:
			return rest
		}
	}
	if !slices.ContainsFunc(ids, early) {
		class = func(manifest.ID) int { return rest }
	}
	sorted := slices.Clone(ids)
	slices.SortStableFunc(sorted, func(a, b manifest.ID) int { return cmp.Compare(class(a), class(b)) })
	var turns []turn
	for i, id := range sorted {
		if i == 0 || class(id) != class(sorted[i-1]) || r.inventory.Entries[id].Rank != r.inventory.Entries[sorted[i-1]].Rank {
			turns = append(turns, turn{early: class(id) != rest})
		}
		last := &turns[len(turns)-1]
		last.ids = append(last.ids, id)
	}
	return turns
}

// takesInstances is true for a definition that will be deleted although it may have instances.
func (r *removal) takesInstances(id manifest.ID) bool {
	entry := r.inventory.Entries[id]
	return id.IsDefinition() && r.AllowCRDDeletion[id.Name] && !r.Orphan[entry.Revision] && !r.leaves(entry)
}
