// Package fsck checks a whole store. Every record must decode, every digest must match, and every
// reference must resolve. Every inventory must belong to a chain, and there must be no left-over
// records.
//
// The package only reads. The collector (package gc) deletes left-over records.
package fsck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/claim"
	"github.com/penstock-project/penstock/pkg/store/identity"
	"github.com/penstock-project/penstock/pkg/store/outbox"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/references"
)

// Kind is the kind of a problem.
type Kind string

// These are the kinds of problems.
const (
	// Unreadable is a record that cannot be decoded.
	Unreadable Kind = "Unreadable"
	// Corrupt is a pack whose bytes do not match their digests.
	Corrupt Kind = "Corrupt"
	// Missing is a referenced pack, or a part or base of a pack.
	Missing Kind = "Missing"
	// Stray is an inventory with entries whose chain has no head.
	Stray Kind = "Stray"
	// LeftOver is a record without references.
	LeftOver Kind = "LeftOver"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Unreadable, Corrupt, Missing, Stray, LeftOver} }

// Problem is one fault in the store.
type Problem struct {
	Kind Kind `json:"kind"`
	// Key is the key of the record in etcd.
	Key string `json:"key"`
	// Message describes the finding and the affected object.
	Message string `json:"message"`
	// Repair describes how to repair the fault.
	Repair string `json:"repair"`
}

// maxProblems bounds a report, because further problems add little.
const maxProblems = 1000

// Report holds the findings of a check.
type Report struct {
	// Revision is the revision of etcd at which the check began.
	Revision int64 `json:"revision"`
	// Records is the number of records that are no packs, and Packs the number of packs. Deltas is
	// the number of packs that are compressed against another pack.
	Records int `json:"records"`
	Packs   int `json:"packs"`
	Deltas  int `json:"deltas"`
	// PackBytes is the size of packs.
	PackBytes int64 `json:"packBytes"`
	// Extensions are the extensions with records, largest first.
	Extensions []Extension `json:"extensions"`
	// Problems are sorted by kind and key. Omitted is the number of further problems.
	Problems []Problem `json:"problems"`
	Omitted  int       `json:"omitted,omitempty"`
}

// Damaged reports whether the check found damage: any problem except left-over records.
func (r Report) Damaged() bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Kind != LeftOver })
}

// Counts returns the number of problems of each kind, including 0.
func (r Report) Counts() map[Kind]int {
	counts := map[Kind]int{}
	for _, kind := range Kinds() {
		counts[kind] = 0
	}
	for _, problem := range r.Problems {
		counts[problem.Kind]++
	}
	return counts
}

func (r *Report) add(kind Kind, key, message, repair string) {
	if len(r.Problems) == maxProblems {
		r.Omitted++
		return
	}
	r.Problems = append(r.Problems, Problem{Kind: kind, Key: key, Message: message, Repair: repair})
}

// These texts describe how to repair problems.
const (
	restore  = "restore the store from a snapshot, or see docs/operations/runbooks/PenstockStoreDamaged.md"
	resupply = "apply the revision again with all of its manifests, or restore the store from a snapshot"
	forget   = "look for these objects in the cluster; penstock does not delete them"
	repair   = "penstock fsck --repair deletes it, and so does the next collection"
)

// Options are the options of a check.
type Options struct {
	// Source reads the store.
	Source *references.Source
	// KV and Prefix are the client and the prefix of the source.
	KV     clientv3.KV
	Prefix string
	// Digester needs the key of the store to check Secrets; without the key, it skips them.
	Digester manifest.Digester
	// Pace is called after reads with the number of bytes, and may wait; nil never waits. Its error
	// ends the check. Reads at the fixed revision count only an eighth, because etcd compacts that
	// revision after minutes.
	Pace func(ctx context.Context, bytes int) error
}

// Check checks a store. The error means that the check is incomplete.
//
//  1. All records except packs must decode. They are read at one revision of etcd.
//  2. At that revision, all referenced packs must exist, and all existing packs must be referenced.
//  3. Each pack is read with its base, and every digest in it is compared. This may take long: a pack that was collected meanwhile is not missing.
func Check(ctx context.Context, o Options) (Report, error) {
	if o.Pace == nil {
		o.Pace = func(context.Context, int) error { return nil }
	}
	c := &check{Options: o, keys: o.Source.Keys(), referred: references.Set{}, heads: map[string]bool{}, inventories: map[string]string{}, named: map[string]bool{}, sizes: newSizes()}
	var err error
	if c.report.Revision, err = o.Source.Revision(ctx); err != nil {
		return Report{}, err
	}
	for _, step := range []func(context.Context) error{c.records, c.packRecords, c.resolve, c.contents} {
		if err := step(ctx); err != nil {
			return Report{}, err
		}
	}
	c.report.Extensions = c.sizes.extensions()
	slices.SortStableFunc(c.report.Problems, func(a, b Problem) int {
		return strings.Compare(string(a.Kind)+a.Key, string(b.Kind)+b.Key)
	})
	return c.report, nil
}

type check struct {
	Options
	keys   store.Keys
	report Report
	// referred holds the referenced packs. unknown is set if some references are unknown.
	referred references.Set
	unknown  bool
	packs    []references.Pack
	sizes    *sizes
	// parts are the keys of chunks and candidates. named holds the chunks in pack records.
	parts []string
	named map[string]bool
	// heads are the chains with a head. inventories holds the chains whose inventory has entries.
	heads       map[string]bool
	inventories map[string]string
}

// records reads all records except packs.
func (c *check) records(ctx context.Context) error {
	read := 0
	return c.Source.Each(ctx, c.report.Revision, func(kv *mvccpb.KeyValue) error {
		key := string(kv.Key)
		c.report.Records++
		roots, err := c.decode(key, kv.Value)
		if err != nil {
			c.unknown = true
			c.report.add(Unreadable, key, err.Error(), restore)
		}
		c.referred.Add(key, roots...)
		c.sizes.record(c.keys, kv)
		if read += len(kv.Value); read > pace {
			read = 0
			return c.Pace(ctx, pace/8)
		}
		return nil
	})
}

// pace is the number of bytes of small records between calls of Pace.
const pace = 256 << 10

// decode decodes one record, and returns the packs that it refers to.
func (c *check) decode(key string, record []byte) ([]string, error) {
	switch c.keys.KindOf(key) {
	case "head":
		head, err := chain.DecodeHead(key, record)
		// The key names the chain, so an unreadable head counts too.
		c.heads[strings.TrimSuffix(key, "/head")] = true
		if err == nil && c.keys.Head(head.Name) != key {
			err = &store.DamagedError{Kind: "chain head", Key: key, Err: fmt.Errorf("it is the head of extension %q", head.Name)}
		}
		return nil, err
	case "inventory":
		inventory, err := chain.DecodeInventory(key, record)
		if err == nil && len(inventory.Entries) > 0 {
			c.inventories[strings.TrimSuffix(key, "/inventory")] = fmt.Sprintf("it has %d objects, and the extension has no head", len(inventory.Entries))
		}
		return nil, err
	case "claim":
		return nil, claim.Verify(key, record)
	case "notification":
		return nil, outbox.Verify(key, record)
	}
	if key == c.keys.Identity() {
		return nil, identity.Verify(key, record)
	}
	return c.Source.Decode(key, record)
}

// packRecords reads the records of packs.
func (c *check) packRecords(ctx context.Context) error {
	reserved := map[string]bool{}
	read := 0
	err := c.Source.EachPackRecord(ctx, c.report.Revision, func(kv *mvccpb.KeyValue) error {
		key := string(kv.Key)
		part, ok := c.keys.PackPartOf(key)
		if !ok {
			return nil
		}
		c.sizes.packs[part.Root] += int64(len(kv.Key) + len(kv.Value))
		switch part.Name {
		case "reserved":
			reserved[part.Root] = true
		case "pack":
			c.packRecord(part.Root, key, kv.Value)
			c.report.PackBytes += int64(len(kv.Value))
		case "chunks":
			c.report.PackBytes += int64(len(kv.Value))
			c.parts = append(c.parts, key)
		default:
			c.parts = append(c.parts, key)
		}
		if read += len(kv.Value); read > pace {
			read = 0
			return c.Pace(ctx, pace/8)
		}
		return nil
	})
	for i := range c.packs {
		c.packs[i].Reserved = reserved[c.packs[i].Root]
	}
	c.sizes.attribute(c.keys, c.packs, c.referred)
	return err
}

func (c *check) packRecord(root, key string, value []byte) {
	one := references.Pack{Root: root}
	record, err := pack.ParseRecord(key, value)
	if err != nil {
		c.report.add(Unreadable, key, err.Error()+c.users(root), resupply)
	}
	if one.Base = record.Base; one.Base != "" {
		c.report.Deltas++
	}
	for _, digest := range record.Chunks {
		c.named[c.keys.Chunk(root, digest)] = true
	}
	c.packs = append(c.packs, one)
	c.report.Packs++
}

// users describes the records that refer to a pack.
func (c *check) users(root string) string {
	if users := c.referred[root]; len(users) > 0 {
		return "; " + strings.Join(users, ", ") + " need it"
	}
	return ""
}

// resolve compares the existing packs with the references.
func (c *check) resolve(context.Context) error {
	for _, root := range references.Missing(c.packs, c.referred) {
		c.report.add(Missing, c.keys.Pack(root), "it is not there"+c.users(root), resupply)
	}
	for _, prefix := range slices.Sorted(maps.Keys(c.inventories)) {
		if !c.heads[prefix] {
			c.report.add(Stray, prefix+"/inventory", c.inventories[prefix], forget)
		}
	}
	if c.unknown {
		return nil // left-over records are unknown
	}
	kept, goes := references.Kept(c.packs, c.referred), map[string]bool{}
	for _, one := range c.packs {
		if goes[one.Root] = !kept[one.Root]; goes[one.Root] {
			c.report.add(LeftOver, c.keys.Pack(one.Root), "nothing refers to it", repair)
		}
	}
	for _, key := range c.parts {
		// Records of a deleted pack are deleted with it.
		if part, _ := c.keys.PackPartOf(key); !c.named[key] && !goes[part.Root] {
			c.report.add(LeftOver, key, "no pack needs it", repair)
		}
	}
	return nil
}

// contents reads every pack and verifies it.
func (c *check) contents(ctx context.Context) error {
	packs := pack.New(c.KV, c.Prefix, c.Digester)
	for _, one := range c.packs {
		objects, err := packs.Objects(ctx, one.Root)
		bytes := 0
		for _, object := range objects {
			bytes += len(object.JSON)
		}
		if err := c.content(ctx, one, err); err != nil {
			return err
		}
		if err := c.Pace(ctx, bytes); err != nil {
			return err
		}
	}
	return nil
}

// content records the result of reading a pack.
func (c *check) content(ctx context.Context, one references.Pack, failed error) error {
	var missing *pack.MissingError
	var corrupt *pack.CorruptError
	key := c.keys.Pack(one.Root)
	switch {
	case failed == nil || errors.Is(failed, manifest.ErrNoSecretKey):
		return nil
	case errors.As(failed, &missing):
		// The pack may have been collected since.
		stored, err := store.Get(ctx, c.KV, key)
		if err == nil && stored.Exists() {
			c.report.add(Missing, key, failed.Error()+c.users(one.Root), resupply)
		}
		return err
	case errors.As(failed, &corrupt):
		c.report.add(Corrupt, key, failed.Error()+c.users(one.Root), resupply)
		return nil
	case errors.As(failed, new(*store.FormatError)):
		return nil // already reported
	default:
		return failed
	}
}
