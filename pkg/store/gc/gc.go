// Package gc deletes packs without references.
//
// All records with the same content share a pack, and it is stored before the record that refers to
// it. So whether a pack has references can change at any moment. The collector keeps to this order:
//
//  1. It finds packs without references, and writes the candidate key of each. From then on no new
//     record may refer to the pack (store.Referable).
//  2. It reads all references again, after the candidates. So it sees every earlier record that
//     still exists.
//  3. It deletes the packs that still have no references. Each transaction compares the pack and
//     its candidate key with the values that were checked. A writer that stored the pack again
//     meanwhile has deleted the candidate key.
//
// So a create or an import that races the collector either wins, or is refused and stores its pack
// again. Every write of a candidate, and every deletion, also compares the key that the collector
// wrote when it began. Of two collectors, the one that began first can delete nothing any more.
// Rebasing compares only the packs, because it changes no content. A collector that dies leaves
// candidates, which the next one takes over.
package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/references"
)

// batch is the number of packs per transaction. etcd allows 128 operations, and does nothing else
// during a transaction.
const batch = 25

// collectorRecord is the record that a collector writes when it begins.
const collectorRecord = "PKG\x01"

// ErrSuperseded reports that another collector has begun since. Nothing was written.
var ErrSuperseded = errors.New("another collector has begun")

// HeldError reports that nothing is collected because a record cannot be read: it may refer to any
// pack.
type HeldError struct{ Err error }

func (e *HeldError) Error() string {
	return fmt.Sprintf("nothing is collected while a record cannot be read, because it may refer to any pack: %v", e.Err)
}

// Unwrap returns which record, and why.
func (e *HeldError) Unwrap() error { return e.Err }

// Rebaser makes packs independent of the packs against which they are compressed.
type Rebaser interface {
	Rebase(ctx context.Context, root string) (bool, error)
	// RebaseOnto compresses it against another one instead, when that pays.
	RebaseOnto(ctx context.Context, root, onto string) (bool, error)
}

// Collector deletes packs.
type Collector struct {
	kv     clientv3.KV
	keys   store.Keys
	source *references.Source
	rebase Rebaser
	// tried has, by the root of a pack, the base against which a delta of it saved too
	// little.
	tried map[string]string
	// read has the records of packs that this collection has read, by root.
	read   map[string]said
	limits limits
	// mayName and mayRebase are the packs and bytes that this collection may still write.
	mayName, mayRebase int
	// term is etcd's revision of the write of the collector's key by this one, 0 before.
	term int64
}

// limits of one collection: packs that it names, and bytes that it rebases.
type limits struct{ named, rebased int }

// New returns a collector of the packs in a source. Rebase may be nil where no pack is
// compressed against another one.
func New(kv clientv3.KV, source *references.Source, rebase Rebaser) *Collector {
	return &Collector{kv: kv, keys: source.Keys(), source: source, rebase: rebase, tried: map[string]string{}, limits: limits{named: maxNamed, rebased: maxRebased}}
}

// Result has the effects of a collection.
type Result struct {
	// Packs and Chunks are the numbers of deleted records; chunks count if they belonged to no
	// pack.
	Packs, Chunks int
	// Rebased packs do not need another one any more that nothing else needed.
	Rebased int
	// PutOff are packs that are to be deleted, or rebased, by another collection: this one
	// has written as much as it may.
	PutOff int
	// Raced is the number of packs that were stored again, or referenced, meanwhile.
	Raced int
	// Present is the number of remaining packs.
	Present int
}

// Begin makes this the collector of the store. Collectors that began earlier can write nothing any
// more.
func (c *Collector) Begin(ctx context.Context) error {
	done, err := c.kv.Put(ctx, c.keys.Collector(), collectorRecord)
	if err != nil {
		return fmt.Errorf("beginning to collect: %w", err)
	}
	c.term = done.Header.Revision
	return nil
}

// maxRounds bounds the rounds of Collect, since the deletions of a round may release further packs.
const maxRounds = 4

// The writes of one collection have to fit into the room that a store at its quota has left for
// deletions, which is 32 MiB at least (storehealth.Reserved): etcd counts what it overwrites
// and deletes until its history is compacted. With more it would refuse the deletions, too.
const (
	// maxRebased bounds the bytes of packs that one collection rebases, approximately.
	maxRebased = 4 << 20
	// maxNamed bounds the packs that one collection names. Each key takes up to 600 bytes to write
	// and to delete.
	maxNamed = 8000
)

// Collect deletes unreferenced packs. It may be called repeatedly, also after an error other than
// ErrSuperseded.
func (c *Collector) Collect(ctx context.Context) (Result, error) {
	if c.term == 0 {
		return Result{}, errors.New("the collector has not begun")
	}
	c.read = map[string]said{}
	defer func() { c.read = nil }()
	c.mayName, c.mayRebase = c.limits.named, c.limits.rebased
	var result Result
	for range maxRounds {
		again, err := c.round(ctx, &result)
		if err != nil || !again {
			return result, err
		}
	}
	return result, nil
}

// round is one round of a collection. It tells whether there may be more to do.
func (c *Collector) round(ctx context.Context, result *Result) (again bool, err error) {
	// 1. All packs, and those that nothing refers to.
	first, err := c.look(ctx)
	if err != nil {
		return false, err
	}
	// 2. Packs that need another one, which nothing refers to, are made to need it no more.
	rebased, putOff, err := c.rebaseLast(ctx, first)
	result.Rebased += rebased
	if err != nil {
		return false, err
	}
	// 3. Candidates are named, then everything is looked at once more.
	unneeded, more := first.unneeded(), 0
	if most := max(0, c.mayName); len(unneeded) > most {
		unneeded, more = unneeded[:most], len(unneeded)-most
	}
	c.mayName -= len(unneeded)
	result.PutOff = putOff + more
	if err := c.name(ctx, first, unneeded); err != nil {
		return false, err
	}
	last := first
	if len(unneeded) > 0 {
		if last, err = c.look(ctx); err != nil {
			return false, err
		}
	}
	deleted, err := c.delete(ctx, last, unneeded)
	result.Packs, result.Raced = result.Packs+deleted, result.Raced+len(unneeded)-deleted
	if err != nil {
		return false, err
	}
	// 4. Parts of packs that were never finished, and candidates that something refers to.
	parts, err := c.tidy(ctx, last)
	result.Chunks += parts
	result.Present = last.present() - deleted
	return rebased > 0 || slices.ContainsFunc(unneeded, func(root string) bool { return first.packs[root].Base != "" }), err
}

// seen has the keys of one pack.
type seen struct {
	references.Pack
	// pack and candidate are the etcd revisions of their last writes, 0 for none.
	pack, candidate int64
	// chunks are the keys of its parts, with the same.
	chunks map[string]int64
	// named are the keys of the parts that its record names, and bytes what it takes, as far
	// as that was read.
	named map[string]bool
	bytes int
}

// state has the records in the store.
type state struct {
	packs map[string]*seen
	// referred has the roots that records refer to, kept those that stay.
	referred references.Set
	kept     map[string]bool
}

// unneeded are the roots of the packs that are there and not kept, in order.
func (s state) unneeded() []string {
	var roots []string
	for _, root := range slices.Sorted(maps.Keys(s.packs)) {
		if s.packs[root].pack != 0 && !s.kept[root] {
			roots = append(roots, root)
		}
	}
	return roots
}

// present returns the number of packs.
func (s state) present() int {
	n := 0
	for _, one := range s.packs {
		if one.pack != 0 {
			n++
		}
	}
	return n
}

// look reads what there is. It reads page after page and needs no revision of etcd, so that
// it ends however often etcd forgets meanwhile: a store as large as its quota forgets every
// 15 s, has to get smaller, and may take longer than that to be read.
//
// Its answer about a pack with a candidate key is as good as if it was of one moment. The
// keys are read first. While that candidate key stays, no record and no pack comes to need
// the pack, and the deletion compares it: so whatever needs the pack then has been there all
// the time, and was seen.
func (c *Collector) look(ctx context.Context) (state, error) {
	s := state{packs: map[string]*seen{}}
	parts := 0
	err := c.source.EachPackKey(ctx, 0, func(kv *mvccpb.KeyValue) error {
		part, ok := c.keys.PackPartOf(string(kv.Key))
		if !ok {
			return nil
		}
		s.note(part, kv)
		if part.Name == "chunks" {
			parts++
		}
		return nil
	})
	if err != nil {
		return state{}, err
	}
	referred, err := c.source.Referred(ctx, 0)
	if err != nil {
		return state{}, held(err)
	}
	s.keep(referred)
	if parts > 0 || len(s.unneeded()) > 0 {
		// Their records matter only now: which packs need which, and what parts they have.
		if err := c.readPacks(ctx, s, referred); err != nil {
			return state{}, err
		}
		s.keep(referred)
	}
	return s, nil
}

func (s state) note(part store.PackPart, kv *mvccpb.KeyValue) {
	one := s.packs[part.Root]
	if one == nil {
		one = &seen{Pack: references.Pack{Root: part.Root}, chunks: map[string]int64{}}
		s.packs[part.Root] = one
	}
	switch part.Name {
	case "pack":
		one.pack = kv.ModRevision
	case "candidate":
		one.candidate = kv.ModRevision
	case "reserved":
		one.Reserved = true
	case "chunks":
		one.chunks[string(kv.Key)] = kv.ModRevision
	}
}

func (s *state) keep(referred references.Set) {
	var packs []references.Pack
	for _, one := range s.packs {
		if one.pack != 0 {
			packs = append(packs, one.Pack)
		}
	}
	s.kept, s.referred = references.Kept(packs, referred), referred
}

// said has the content of a pack's record.
type said struct {
	// at is etcd's revision of its last write.
	at   int64
	base string
	// bytes is its size, with its parts.
	bytes int
	named map[string]bool
}

// readPacks fills in what the records of packs say. Those that this collection has read
// already, and nobody has written since, are not read again: all packs together may be
// large.
func (c *Collector) readPacks(ctx context.Context, s state, referred references.Set) error {
	var unread []string
	for _, root := range slices.Sorted(maps.Keys(s.packs)) {
		one := s.packs[root]
		if one.pack == 0 {
			continue
		}
		if read, ok := c.read[root]; ok && read.at == one.pack {
			one.learn(read)
			continue
		}
		unread = append(unread, root)
	}
	return c.source.EachPack(ctx, unread, func(root string, kv *mvccpb.KeyValue) error {
		one := s.packs[root]
		record, err := pack.ParseRecord(string(kv.Key), kv.Value)
		if err != nil {
			if len(referred[root]) == 0 {
				return nil // it goes, and needs nothing
			}
			return held(err)
		}
		read := said{at: kv.ModRevision, base: record.Base, bytes: record.StoredBytes, named: map[string]bool{}}
		for _, digest := range record.Chunks {
			read.named[c.keys.Chunk(root, digest)] = true
		}
		c.read[root] = read
		one.learn(read)
		return nil
	})
}

// learn notes what a record says. One that was written since its key was seen keeps its
// base, and which parts it has is not known.
func (s *seen) learn(read said) {
	s.Base, s.bytes = read.base, read.bytes
	if read.at == s.pack {
		s.named = read.named
	}
}

// held makes an error of a record that cannot be read.
func held(err error) error {
	var damaged *store.DamagedError
	var format *store.FormatError
	if errors.As(err, &damaged) || errors.As(err, &format) {
		return &HeldError{Err: err}
	}
	return err
}
