package clusterextensionrevision

import (
	"cmp"
	"context"
	"slices"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// maxPrevious bounds the revisions that the server writes into spec.previous.
const maxPrevious = 10

// ChainFunc returns the revisions of a chain as they are now, in no order.
// Nobody changes what it returns: the watch cache shares it.
type ChainFunc func(ctx context.Context, chain string) ([]olm.ClusterExtensionRevision, error)

// previousOf returns what a new revision of a chain follows: all of a lower
// number that are not given up yet, newest first.
func previousOf(revisions []olm.ClusterExtensionRevision, number int64) []olm.PreviousRevision {
	var alive []*olm.ClusterExtensionRevision
	for i := range revisions {
		spec := &revisions[i].Spec
		if spec.LifecycleState != olm.LifecycleStateArchived && spec.Revision < number {
			alive = append(alive, &revisions[i])
		}
	}
	slices.SortFunc(alive, func(a, b *olm.ClusterExtensionRevision) int {
		return cmp.Compare(b.Spec.Revision, a.Spec.Revision)
	})
	var previous []olm.PreviousRevision
	for _, revision := range alive[:min(len(alive), maxPrevious)] {
		previous = append(previous, olm.PreviousRevision{Name: revision.Name, UID: revision.UID})
	}
	return previous
}

// sizesIn returns the sizes of all objects that revisions hold.
func sizesIn(revisions []olm.ClusterExtensionRevision) map[entryKey]int64 {
	sizes := map[entryKey]int64{}
	for r := range revisions {
		eachObject(&revisions[r], func(_, _ int, entry *olm.RevisionObject) {
			sizes[keyOf(entry)] = entry.Size
		})
	}
	return sizes
}

// eachObject calls f for every entry of a revision, in rollout order.
func eachObject(revision *olm.ClusterExtensionRevision, f func(phase, index int, entry *olm.RevisionObject)) {
	for p := range revision.Spec.Phases {
		for e := range revision.Spec.Phases[p].Objects {
			f(p, e, &revision.Spec.Phases[p].Objects[e])
		}
	}
}
