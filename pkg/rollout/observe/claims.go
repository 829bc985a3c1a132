package observe

import (
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// claims holds the interests of each owner. The lock of the cache guards it.
type claims struct {
	interests map[string][]Interest
	// wanting are the owners that want an object, by a hash of its ID. Hashes take a third of the
	// memory of IDs. An owner may be notified of another object with the same hash, which costs a
	// pass.
	wanting map[uint64][]string
	seed    maphash.Seed
}

func newClaims() claims {
	return claims{interests: map[string][]Interest{}, wanting: map[uint64][]string{}, seed: maphash.MakeSeed()}
}

// hash returns the key of an object in wanting.
func (c *claims) hash(id manifest.ID) uint64 { return maphash.Comparable(c.seed, id) }

// Want replaces the interests of an owner. It starts and stops watches without waiting for them. It
// copies the interests.
func (c *Cache) Want(owner string, interests ...Interest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.interests[owner]
	if known && slices.EqualFunc(old, interests, Interest.equal) {
		return
	}
	interests = slices.Clone(interests)
	c.claim(owner, old, interests)
	c.interests[owner] = interests
}

// Drop removes an owner and its interests. It is not notified any more.
func (c *Cache) Drop(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claim(owner, c.interests[owner], nil)
	delete(c.interests, owner)
}

// claim replaces the old interests of an owner by new ones.
func (c *Cache) claim(owner string, old, new []Interest) {
	// All old interests are removed before new ones are added, because an old and a new object may
	// have the same hash.
	for _, i := range old {
		drop(c.wanting, c.hash(i.ID), owner)
	}
	targets := make(map[target]bool)
	for _, i := range new {
		if object := c.hash(i.ID); !slices.Contains(c.wanting[object], owner) {
			c.wanting[object] = append(c.wanting[object], owner)
		}
		targets[targetOf(i)] = true
	}
	// New targets are added first: a kind that is wanted before and after keeps its watch.
	for t := range targets {
		c.add(t).owners[owner] = struct{}{}
	}
	for _, i := range new {
		c.read(i)
	}
	for t := range targets {
		c.serve(c.all[t])
	}
	for _, i := range old {
		if t := targetOf(i); !targets[t] {
			c.release(t, owner)
		}
	}
}

// read extends the fields that the watches of a kind keep.
func (c *Cache) read(i Interest) {
	kind := i.ID.GroupKind()
	reads := c.reads[kind]
	if covers(reads.Reads, i.Reads) {
		return
	}
	reads.Reads = reads.Union(i.Reads)
	c.reads[kind] = reads
	for _, src := range c.all {
		if src.GroupKind() == kind {
			c.serve(src)
		}
	}
}

// serve starts a stream for a source, unless its newest stream keeps enough fields.
func (c *Cache) serve(src *source) {
	reads := c.reads[src.GroupKind()].Reads
	if newest := src.newest(); newest != nil && covers(newest.reads, reads) {
		return
	}
	s := c.newStream(src.target, reads)
	if src.current == nil {
		src.current = s
	} else {
		c.stop(src.next)
		src.next = s
	}
	c.starting = append(c.starting, s)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// release ends the interest of an owner in a target. It ends the watch after the last owner.
func (c *Cache) release(t target, owner string) {
	src, ok := c.all[t]
	if !ok {
		return
	}
	delete(src.owners, owner)
	if len(src.owners) > 0 {
		return
	}
	c.sources.remove(src)
	c.stop(src.current)
	c.stop(src.next)
}

func (c *Cache) newStream(t target, reads probe.Reads) *stream {
	return &stream{
		target:  t,
		keeper:  keeper{names: c.options.Names, kind: t.GroupKind(), reads: reads, managed: t.byName()},
		view:    newView(),
		api:     c.api,
		mapping: c.options.Mapping,
		clock:   c.options.Clock,
		changed: c.changed,
		settled: c.settled,
		kick:    make(chan struct{}, 1),
	}
}

// stop ends a stream, or prevents its start.
func (c *Cache) stop(s *stream) {
	if s == nil {
		return
	}
	if cancel, started := c.cancels[s]; started {
		cancel()
		delete(c.cancels, s)
		return
	}
	c.starting = slices.DeleteFunc(c.starting, func(other *stream) bool { return other == s })
}

// changed notifies the owners that are interested in a changed object.
func (c *Cache) changed(s *stream, old, new *Observation) {
	if servesKinds(s.kind) {
		c.Refresh()
	}
	if same(old, new) {
		return
	}
	c.mu.RLock()
	owners := map[string]struct{}{}
	c.concerned(owners, old)
	c.concerned(owners, new)
	c.mu.RUnlock()
	c.notify(owners)
}

// settled notifies owners when a watch becomes healthy or unhealthy. A healthy next stream replaces
// the current one.
func (c *Cache) settled(s *stream, e effect) {
	if servesKinds(s.kind) {
		c.Refresh()
	}
	owners := map[string]struct{}{}
	c.mu.Lock()
	src, wanted := c.all[s.target]
	if wanted && src.next == s && s.see(s.key()).healthy {
		c.stop(src.current)
		src.current, src.next = s, nil
	}
	if wanted && e.state {
		for owner := range src.owners {
			owners[owner] = struct{}{}
		}
	}
	for _, object := range e.objects {
		c.concerned(owners, object)
	}
	c.mu.Unlock()
	c.notify(owners)
}

// concerned adds the owners that want events of an object: its chain, and all owners with an
// interest in it.
func (c *Cache) concerned(owners map[string]struct{}, object *Observation) {
	if object == nil {
		return
	}
	if _, known := c.interests[object.Chain]; known {
		owners[object.Chain] = struct{}{}
	}
	for _, owner := range c.wanting[c.hash(object.ID)] {
		owners[owner] = struct{}{}
	}
}

// notify calls Notify, never under a lock.
func (c *Cache) notify(owners map[string]struct{}) {
	for owner := range owners {
		c.options.Notify(owner)
	}
}

// servesKinds reports whether objects of a kind make the server serve other kinds.
func servesKinds(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return true
	default:
		return false
	}
}

func (i Interest) equal(other Interest) bool {
	return i.ID == other.ID && i.Version == other.Version && i.ByName == other.ByName &&
		i.Reads.Whole == other.Reads.Whole && i.Reads.Status == other.Reads.Status &&
		slices.EqualFunc(i.Reads.Fields, other.Reads.Fields, slices.Equal[[]string])
}
