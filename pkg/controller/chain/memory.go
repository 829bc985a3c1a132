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

// memory holds facts of a revision between passes. Each of them can be computed again.
type memory struct {
	// root names the revision's pack, which never changes.
	root string
	// written is the last written row of history, without counts, which never change.
	written store.Row
	// numbered is true if the head records the revision's number as used.
	numbered bool
	// again is the time of the next attempt at a refused rollback; wait is the delay before it.
	again time.Time
	wait  time.Duration
	// unknownSince is the time since when answers of watches are missing; zero if none is missing.
	unknownSince time.Time
	// vetted is true after the manifests were validated, before the first write.
	vetted bool
	// inverted holds the objects that depend on a later install level. searched is true after they
	// were computed.
	inverted []release.Inversion
	searched bool
	told     told
	own      ownWrite
}

// ownWrite is this controller's last write to a revision, until the cache has it. The cache can get
// it during a pass.
type ownWrite struct {
	mu sync.Mutex
	// latest is the revision as last written. It is nil once the cache has it, because most
	// revisions have no other pass for days, and the copy takes memory.
	latest *olmv1alpha1.ClusterExtensionRevision
	// seen is the resourceVersion of the last change in the cache; empty for none.
	seen string
}

// wrote remembers the answer to a write.
func (o *ownWrite) wrote(revision *olmv1alpha1.ClusterExtensionRevision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.latest = revision; includes(o.seen, revision) {
		o.latest = nil
	}
}

// saw records that the cache has reached a resourceVersion.
func (o *ownWrite) saw(version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen = version; o.latest != nil && includes(version, o.latest) {
		o.latest = nil
	}
}

// pending returns the write that the cache may lack, or nil.
func (o *ownWrite) pending() *olmv1alpha1.ClusterExtensionRevision {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest
}

// includes reports whether a cache with this resourceVersion of a revision includes a write. An
// empty version includes no write. If the write deleted the revision, a cache that still has the
// revision does not include it.
func includes(version string, written *olmv1alpha1.ClusterExtensionRevision) bool {
	if version == "" || gone(written) {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, written.ResourceVersion)
	return err != nil || order >= 0
}

// gone reports whether the write removed the last finalizer, and so deleted the revision.
func gone(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return !revision.DeletionTimestamp.IsZero() && len(revision.Finalizers) == 0
}

type memories map[types.UID]*memory

func (m memories) wrote(revision *olmv1alpha1.ClusterExtensionRevision) {
	if known := m[revision.UID]; known != nil {
		known.own.wrote(revision)
	}
}

// written holds the writes that the cache may lack, by uid.
type written map[types.UID]*olmv1alpha1.ClusterExtensionRevision

// recall replaces cached revisions by the controller's own later writes, and drops deleted
// revisions. The cache lags behind these writes, and the API would refuse a write that is based on
// an outdated revision.
func (w written) recall(revisions []olmv1alpha1.ClusterExtensionRevision) []olmv1alpha1.ClusterExtensionRevision {
	current := revisions[:0]
	for _, seen := range revisions {
		switch latest := w[seen.UID]; {
		case latest == nil || includes(seen.ResourceVersion, latest):
		case gone(latest):
			continue // the cache will drop it
		default:
			seen = *latest
		}
		current = append(current, seen)
	}
	return current
}

// memoryByChain holds the memories of all chains. Only one pass at a time uses the memories of a
// chain.
type memoryByChain struct {
	mu     sync.Mutex
	chains map[string]memories
}

// open returns the memories of a chain's existing revisions, and drops all other memories of the
// chain.
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

// pending returns the writes of a chain that the cache may lack. Call it before reading the cache.
// A write is dropped from this memory once the cache has it. So a later read of the cache shows
// every write that pending omits; an earlier read might not.
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

// saw records the version of each revision that enters the cache.
func (r *memoryByChain) saw(revision client.Object) {
	r.mu.Lock()
	known := r.chains[revision.GetLabels()[olmv1alpha1.ChainLabel]][revision.GetUID()]
	r.mu.Unlock()
	if known != nil {
		known.own.saw(revision.GetResourceVersion())
	}
}
