package rollout

import (
	"cmp"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// turn is a set of objects that are deleted together, after all earlier turns are finished.
type turn struct {
	objects []*object
	// early is true for a turn before the order of ranks.
	early bool
}

// turnsOf returns the order of deletion. Ranks determine it, the highest first, with one exception.
// Custom resources whose definitions are unclaimed too, and then definitions that are deleted with
// their instances, precede all other objects. Their controller is among those other objects, and
// must run to finish their finalizers. (The API server serves a definition and its instances until
// the last instance is deleted.) Admission objects precede both: a webhook that does not answer
// would refuse the deletion of the custom resources, and nothing could ever be deleted.
//
// The objects must be sorted by rank.
func turnsOf(objects, unclaimed []*object) []turn {
	isInstance := func(id manifest.ID) bool {
		return id.Group != "" && slices.ContainsFunc(unclaimed, func(d *object) bool { return d.step.DefinesKindsOf(id.Group) })
	}
	const (
		admission = iota
		instances
		definitions
		rest
	)
	class := func(o *object) int {
		switch {
		case o.takesInstances():
			return definitions
		case isInstance(o.step.ID):
			return instances
		case o.step.Group == "admissionregistration.k8s.io":
			return admission
		default:
			return rest
		}
	}
	if !slices.ContainsFunc(objects, func(o *object) bool { return class(o) == instances || class(o) == definitions }) {
		class = func(*object) int { return rest }
	}
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *object) int { return cmp.Compare(class(a), class(b)) })
	var turns []turn
	for i, o := range sorted {
		if i == 0 || class(o) != class(sorted[i-1]) || o.memo.Rank != sorted[i-1].memo.Rank {
			turns = append(turns, turn{early: class(o) != rest})
		}
		last := &turns[len(turns)-1]
		last.objects = append(last.objects, o)
	}
	return turns
}

func (o *object) takesInstances() bool {
	return o.step.IsDefinition() && o.AllowCRDDeletion[o.step.Name] && !o.Orphan[o.revision] && !o.leaves()
}
