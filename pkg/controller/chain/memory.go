package chain

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
}

// memories are those of a chain's revisions, by uid.
type memories map[types.UID]*memory

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
