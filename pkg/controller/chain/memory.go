package chain

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	rev "github.com/penstock-project/penstock/pkg/revision"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// memory has the facts of a revision that are kept from pass to pass. All of it can be found out
// again.
type memory struct {
	// root names the revision's pack; it never changes.
	root string
	// written is the row of history that was written last, without counts: those
	// never change.
	written store.Row
	// numbered is true when the revision's number is known to be used.
	numbered bool
	// again is the time of the next attempt at a rollback that was refused, and wait the time
	// before it.
	again time.Time
	wait  time.Duration
	// unknownSince is since when the answers of watches have been on their way; zero
	// when none are.
	unknownSince time.Time
	// vetted is true when the manifests were found to be fit before the first of
	// them was written.
	vetted bool
	// inverted are the objects that wait for a later install level; searched is
	// true when they were looked for.
	inverted []release.Inversion
	searched bool
	// told are the events of the rollout.
	told told
	own  ownWrite
}

// ownWrite is a write of this controller to a revision that the cache does not have yet.
// The cache can get it during a pass.
type ownWrite struct {
	mu sync.Mutex
	// latest is the revision as it was written last, nil when the cache has come to
	// that: it is a copy of its own, and most revisions have no other pass for days.
	latest *olmv1alpha1.ClusterExtensionRevision
	// seen is the version of the last change that the cache told of, empty for none.
	seen string
}

// wrote notes a revision as it was answered.
func (o *ownWrite) wrote(revision *olmv1alpha1.ClusterExtensionRevision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.latest = revision; includes(o.seen, revision) {
		o.latest = nil
	}
}

// saw notes a version that the cache has come to.
func (o *ownWrite) saw(version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen = version; o.latest != nil && includes(version, o.latest) {
		o.latest = nil
	}
}

// pending returns the write that the cache may lack; nil for none.
func (o *ownWrite) pending() *olmv1alpha1.ClusterExtensionRevision {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest
}

// includes is true when a cache that has come to a version of a revision, empty for
// none, has come to what was written. A cache that has the revision has not, when that
// went with the write.
func includes(version string, written *olmv1alpha1.ClusterExtensionRevision) bool {
	if version == "" || gone(written) {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, written.ResourceVersion)
	return err != nil || order >= 0
}

// gone is true for a revision that went with the write that was answered so.
func gone(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return !revision.DeletionTimestamp.IsZero() && len(revision.Finalizers) == 0
}

// memories are the memories of a chain's revisions, by uid.
type memories map[types.UID]*memory

// wrote notes a revision as it was answered to a write of ours.
func (m memories) wrote(revision *olmv1alpha1.ClusterExtensionRevision) {
	if known := m[revision.UID]; known != nil {
		known.own.wrote(revision)
	}
}

// written are the writes that the cache may lack, by uid.
type written map[types.UID]*olmv1alpha1.ClusterExtensionRevision

// recall replaces revisions of the cache by our own later writes, and leaves out deleted
// ones. The cache lags behind our writes: a write that is based on an outdated revision
// would be refused.
func (w written) recall(revisions []olmv1alpha1.ClusterExtensionRevision) []olmv1alpha1.ClusterExtensionRevision {
	current := revisions[:0]
	for _, seen := range revisions {
		switch latest := w[seen.UID]; {
		case latest == nil || includes(seen.ResourceVersion, latest):
		case gone(latest):
			continue // the cache will hear of it
		default:
			seen = *latest
		}
		current = append(current, seen)
	}
	return current
}

// memoryByChain keeps memories by chain. One pass at a time works on those of a chain.
type memoryByChain struct {
	mu     sync.Mutex
	chains map[string]memories
}

// open returns the memories of a chain: of the revisions that are there, and of no
// other.
func (r *memoryByChain) open(chain string, revisions []olmv1alpha1.ClusterExtensionRevision) memories {
	r.mu.Lock()
	known := r.chains[chain]
	r.mu.Unlock()
	kept := make(memories, len(revisions))
	for i := range revisions {
		uid := revisions[i].UID
		if kept[uid] = known[uid]; kept[uid] == nil {
			kept[uid] = &memory{root: rev.PackRoot(&revisions[i])}
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

// pending returns what was written of a chain and the cache may lack. It is asked
// before the cache is read: the cache has what is forgotten by then, and need not have
// had what is forgotten later.
func (r *memoryByChain) pending(chain string) written {
	r.mu.Lock()
	known := r.chains[chain]
	r.mu.Unlock()
	pending := written{}
	for uid, memory := range known {
		if latest := memory.own.pending(); latest != nil {
			pending[uid] = latest
		}
	}
	return pending
}

// saw is called for each revision that enters the cache.
func (r *memoryByChain) saw(revision client.Object) {
	r.mu.Lock()
	known := r.chains[revision.GetLabels()[olmv1alpha1.ChainLabel]][revision.GetUID()]
	r.mu.Unlock()
	if known != nil {
		known.own.saw(revision.GetResourceVersion())
	}
}
