// Package gc deletes packs without references.
//
// All records with the same content share a pack, and the pack is stored before the record that
// refers to it. So at any moment, a pack may get a reference. The collector works in this order:
//
//  1. It finds packs without references, and writes the candidate key of each. From then on no new
//     record may refer to the pack (store.Referable).
//  2. It reads all references again, after the candidates. So it sees every earlier record that
//     still exists.
//  3. It deletes the packs that still have no references. Each transaction compares the pack and
//     its candidate key with the values that were checked. A writer that stored the pack again
//     meanwhile has deleted the candidate key.
//
// So a create or an import that races the collector either succeeds, or is refused and stores its
// pack again. Every write of a candidate, and every deletion, also compares the key that the
// collector wrote when it began. Of two collectors, the older can no longer delete anything.
// Rebasing compares only the packs, because it changes no content. A collector that dies leaves
// candidates, which the next collector takes over.
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

// HeldError reports that nothing is collected because a record is unreadable: it may refer to any
// pack.
type HeldError struct{ Err error }

func (e *HeldError) Error() string {
	return fmt.Sprintf("nothing is collected while a record cannot be read, because it may refer to any pack: %v", e.Err)
}

// Unwrap returns the error of the record.
func (e *HeldError) Unwrap() error { return e.Err }

// Rebaser makes packs independent of their bases.
type Rebaser interface {
	Rebase(ctx context.Context, root string) (bool, error)
	// RebaseOnto compresses the pack against another base, if that saves enough.
	RebaseOnto(ctx context.Context, root, onto string) (bool, error)
}

// Collector deletes packs.
type Collector struct {
	kv     clientv3.KV
	keys   store.Keys
	source *references.Source
	rebase Rebaser
	// tried holds, by the root of a pack, the base whose delta saved too little.
	tried map[string]string
	// read holds the pack records that this collection has read, by root.
	read   map[string]said
	limits limits
	// mayName and mayRebase are the packs and bytes that this collection may still write.
	mayName, mayRebase int
	// term is etcd's revision of this collector's write of the collector key; 0 before Begin.
	term int64
}

// limits bounds one collection: the packs that it names, and the bytes that it rebases.
type limits struct{ named, rebased int }

// New returns a collector of the packs in a source. rebase may be nil if no pack is a delta.
func New(kv clientv3.KV, source *references.Source, rebase Rebaser) *Collector {
	return &Collector{kv: kv, keys: source.Keys(), source: source, rebase: rebase, tried: map[string]string{}, limits: limits{named: maxNamed, rebased: maxRebased}}
}

// Result holds the effects of a collection.
type Result struct {
	// Packs and Chunks are the numbers of deleted records; Chunks counts only chunks without a
	// pack.
	Packs, Chunks int
	// Rebased is the number of packs that no longer need an otherwise unreferenced base.
	Rebased int
	// PutOff is the number of packs left for a later collection, because this collection has
	// reached its limits.
	PutOff int
	// Raced is the number of packs that were stored again, or referenced, meanwhile.
	Raced int
	// Present is the number of remaining packs.
	Present int
}

// Begin makes this the collector of the store. Collectors that began earlier can no longer write.
func (c *Collector) Begin(ctx context.Context) error {
	done, err := c.kv.Put(ctx, c.keys.Collector(), collectorRecord)
	if err != nil {
		return fmt.Errorf("beginning to collect: %w", err)
	}
	c.term = done.Header.Revision
	return nil
}

// maxRounds bounds the rounds of Collect. The deletions of a round may release further packs.
const maxRounds = 4

// The writes of one collection must fit into the space that a full store reserves for deletions, at
// least 32 MiB (storehealth.Reserved). etcd counts overwritten and deleted records until its
// history is compacted. Above this space, etcd would refuse the deletions too.
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

// round runs one round of a collection. It reports whether another round may do more.
func (c *Collector) round(ctx context.Context, result *Result) (again bool, err error) {
	// 1. Find all packs, and those without references.
	first, err := c.look(ctx)
	if err != nil {
		return false, err
	}
	// 2. Make packs independent of bases that have no other references.
	rebased, putOff, err := c.rebaseLast(ctx, first)
	result.Rebased += rebased
	if err != nil {
		return false, err
	}
	// 3. Name the candidates, then read everything again.
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
	// 4. Delete parts of packs that were never finished, and candidate keys of referenced packs.
	parts, err := c.tidy(ctx, last)
	result.Chunks += parts
	result.Present = last.present() - deleted
	return rebased > 0 || slices.ContainsFunc(unneeded, func(root string) bool { return first.packs[root].Base != "" }), err
}

// seen holds the keys of one pack.
type seen struct {
	references.Pack
	// pack and candidate are the etcd revisions of their last writes, or 0.
	pack, candidate int64
	// chunks holds the keys of its parts, with the etcd revisions of their last writes.
	chunks map[string]int64
	// named holds the keys of the parts in the pack's record, and bytes the size of the pack. Both
	// are set after the record is read.
	named map[string]bool
	bytes int
}

// state holds the records in the store.
type state struct {
	packs map[string]*seen
	// referred holds the referenced roots. kept holds the roots of packs that stay.
	referred references.Set
	kept     map[string]bool
}

// unneeded returns the roots of the existing packs that are not kept, sorted.
func (s state) unneeded() []string {
	var roots []string
	for _, root := range slices.Sorted(maps.Keys(s.packs)) {
		if s.packs[root].pack != 0 && !s.kept[root] {
			roots = append(roots, root)
		}
	}
	return roots
}

func (s state) present() int {
	n := 0
	for _, one := range s.packs {
		if one.pack != 0 {
			n++
		}
	}
	return n
}

// look reads the records of the store, page after page, without a fixed etcd revision. So it ends
// even if etcd compacts its history meanwhile. A store at its quota compacts every 15 s, must
// become smaller, and may need longer to be read.
//
// For a pack with a candidate key, the result is as consistent as a read at one moment. The keys
// are read first. While the candidate key exists, no record and no pack can add a reference to the
// pack, and the deletion compares the key. So every reference at the time of the deletion existed
// all the time, and was seen.
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
		// The records matter only now: they name the bases and the parts of packs.
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

// said holds the content of a pack's record.
type said struct {
	// at is etcd's revision of its last write.
	at   int64
	base string
	// bytes is its size, with its parts.
	bytes int
	named map[string]bool
}

// readPacks fills in the content of pack records. It does not read unchanged records again in the
// same collection, because all packs together may be large.
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
				return nil // it is deleted, so its base does not matter
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

// learn adds the content of a record. If the record was written after its key was seen, its base is
// kept, and its parts are unknown.
func (s *seen) learn(read said) {
	s.Base, s.bytes = read.base, read.bytes
	if read.at == s.pack {
		s.named = read.named
	}
}

// held converts the error of an unreadable record.
func held(err error) error {
	var damaged *store.DamagedError
	var format *store.FormatError
	if errors.As(err, &damaged) || errors.As(err, &format) {
		return &HeldError{Err: err}
	}
	return err
}
