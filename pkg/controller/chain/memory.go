package chain

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	store "github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

// memory is what is remembered of a revision from pass to pass. All of it can be
// found out again.
type memory struct {
	// root names the revision's pack; it never changes.
	root string
	// written is the row of history that was written last, without counts: those
	// never change.
	written store.Row
	// numbered is true when the revision's number is known to be used.
	numbered bool
	// again is when a rollback that was refused may be asked for again, and wait
	// how long that took to come.
	again time.Time
	wait  time.Duration
	// unseen is since when the answers of watches have been on their way; zero
	// when none are.
	unseen time.Time
	// vetted is true when the manifests were found to be fit before the first of
	// them was written.
	vetted bool
	// inverted are the objects that wait for a later install level; searched is
	// true when they were looked for.
	inverted []release.Inversion
	searched bool
	// latest is the revision as this controller wrote it last, until the cache has
	// come to that; nil otherwise.
	latest *olmv1alpha1.ClusterExtensionRevision
}

// memories are those of a chain's revisions, by uid.
type memories map[types.UID]*memory

// wrote notes a revision as it was answered to a write of ours.
func (m memories) wrote(revision *olmv1alpha1.ClusterExtensionRevision) {
	if known := m[revision.UID]; known != nil {
		known.latest = revision
	}
}

// recall puts what was written in the place of what was seen before that, and
// leaves out what is gone since. The cache lags behind our own writes: a pass that
// begins with what they have changed would be refused, and have to come again.
func (m memories) recall(revisions []olmv1alpha1.ClusterExtensionRevision) []olmv1alpha1.ClusterExtensionRevision {
	current := revisions[:0]
	for _, seen := range revisions {
		known := m[seen.UID]
		switch latest := known.latest; {
		case latest == nil:
		case !latest.DeletionTimestamp.IsZero() && len(latest.Finalizers) == 0:
			continue // it went with that write; the cache will hear of it
		case older(&seen, latest):
			seen = *latest
		default:
			known.latest = nil // the cache has come to it
		}
		current = append(current, seen)
	}
	return current
}

// older is true for an earlier state of the same revision.
func older(a, b *olmv1alpha1.ClusterExtensionRevision) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

// recollections keeps memories by chain. One pass at a time works on those of a chain.
type recollections struct {
	mu     sync.Mutex
	chains map[string]memories
}

// open returns the memories of a chain: of the revisions that are there, and of no
// other.
func (r *recollections) open(chain string, revisions []olmv1alpha1.ClusterExtensionRevision) memories {
	r.mu.Lock()
	known := r.chains[chain]
	r.mu.Unlock()
	kept := make(memories, len(revisions))
	for i := range revisions {
		uid := revisions[i].UID
		if kept[uid] = known[uid]; kept[uid] == nil {
			kept[uid] = &memory{root: pack.Root(refs(&revisions[i]))}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(kept) == 0 {
		delete(r.chains, chain)
		return kept
	}
	if r.chains == nil {
		r.chains = map[string]memories{}
	}
	r.chains[chain] = kept
	return kept
}

// refs lists what a revision refers to, in its order.
func refs(revision *olmv1alpha1.ClusterExtensionRevision) []manifest.Ref {
	var out []manifest.Ref
	for _, phase := range revision.Spec.Phases {
		for _, object := range phase.Objects {
			out = append(out, ref(object))
		}
	}
	return out
}
