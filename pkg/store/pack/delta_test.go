package pack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// version returns the manifests of a version of an operator. Most of the content is the same in all
// versions, and does not compress.
func version(t testing.TB, operator string, n int) []manifest.Object {
	t.Helper()
	objects := noise(t, 3, 2000+len(operator)*2)
	return append(objects, object(t, "ConfigMap", operator, fmt.Sprint("version ", n)), object(t, "Secret", operator, fmt.Sprint("key ", n)))
}

func recordOf(t testing.TB, s *Store, root string) Record {
	t.Helper()
	stored, err := store.Get(t.Context(), s.kv, s.keys.Pack(root))
	if err != nil {
		t.Fatal(err)
	}
	record, err := ParseRecord(s.keys.Pack(root), stored.Bytes)
	if err != nil {
		t.Fatalf("the record of %s: %v", root, err)
	}
	return record
}

func mustPut(t testing.TB, s *Store, objects []manifest.Object, chain ...string) string {
	t.Helper()
	root, err := s.PutInChain(t.Context(), objects, chain)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	mustHave(t, s, objects)
	return root
}

type countingKV struct {
	clientv3.KV
	gets int
}

func (c *countingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	c.gets++
	return c.KV.Get(ctx, key, opts...)
}

// TestDelta: the revisions of a chain are small deltas against a whole pack. At a bounded distance,
// there is a new whole pack. A read needs at most two records.
func TestDelta(t *testing.T) {
	kv := &countingKV{KV: storetest.NewMemory()}
	s := New(kv, "/p", digester())
	var chain []string
	wholes := 0
	for n := range 2*maxDistance + 4 {
		objects := version(t, "argocd", n)
		root := mustPut(t, s, objects, chain...)
		record := recordOf(t, s, root)
		if whole := n%(maxDistance+1) == 0; whole != (record.Base == "") || record.Distance != n%(maxDistance+1) {
			t.Errorf("pack %d is %+v", n, record)
		}
		if record.Base == "" {
			wholes++
		} else if base := recordOf(t, s, record.Base); base.Base != "" || record.StoredBytes*5 > base.StoredBytes {
			t.Errorf("pack %d is %+v, and its base %+v", n, record, base)
		}
		before := kv.gets
		mustHave(t, s, objects)
		if reads := kv.gets - before; reads > 2 {
			t.Errorf("pack %d was read with %d records", n, reads)
		}
		chain = slices.Insert(chain, 0, root)
	}
	if wholes != 3 {
		t.Errorf("%d of %d packs are whole, want 3", wholes, len(chain))
	}
}

// TestNoDelta: a pack is whole if a delta would save too little, or would exceed a limit.
func TestNoDelta(t *testing.T) {
	s := New(storetest.NewMemory(), "/p", digester())
	first := mustPut(t, s, version(t, "argocd", 1))
	large := []manifest.Object{object(t, "ConfigMap", "large", strings.Repeat("large ", maxDeltaContent/6))}
	cases := map[string]struct {
		reason  string
		objects []manifest.Object
		chain   []string
	}{
		"NoChain":    {reason: "a plan belongs to no chain", objects: version(t, "argocd", 2)},
		"Unlike":     {reason: "a third has to be saved", objects: noise(t, 4, 3000), chain: []string{first}},
		"Itself":     {reason: "a pack is no base of itself", objects: version(t, "argocd", 3), chain: []string{Root(refs(version(t, "argocd", 3)))}},
		"Absent":     {reason: "a base that is not there cannot be one", objects: version(t, "argocd", 4), chain: []string{Root(nil)}},
		"TooLarge":   {reason: "memory of a read", objects: append(large, version(t, "argocd", 5)...), chain: []string{first}},
		"LargeDelta": {reason: "a delta is one record", objects: noise(t, 8, 400<<10), chain: []string{mustPut(t, s, noise(t, 4, 400<<10))}},
		"LargeBase":  {reason: "memory of a read", objects: version(t, "argocd", 6), chain: []string{mustPut(t, s, large)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if record := recordOf(t, s, mustPut(t, s, tc.objects, tc.chain...)); record.Base != "" {
				t.Errorf("%s: the pack is %+v", tc.reason, record)
			}
		})
	}
}

// TestChunkedIsNoBase: a chunked pack is whole, and cannot be a base, because reading a delta takes
// only two records.
func TestChunkedIsNoBase(t *testing.T) {
	s := chunked(New(storetest.Client(t), "/p", digester()), 3000)
	first := mustPut(t, s, version(t, "argocd", 1))
	if len(recordOf(t, s, first).Chunks) == 0 {
		t.Fatal("this test needs chunks")
	}
	if record := recordOf(t, s, mustPut(t, s, version(t, "argocd", 2), first)); record.Base != "" || len(record.Chunks) == 0 {
		t.Errorf("the second pack is %+v", record)
	}
}

// TestSharedPack: a pack never depends on a pack of another chain. A pack that two chains have is
// whole, unless both have its base.
func TestSharedPack(t *testing.T) {
	s := New(storetest.NewMemory(), "/p", digester())
	one, two := version(t, "argocd", 1), version(t, "argocd", 2)
	first := mustPut(t, s, one)
	second := mustPut(t, s, two, first)
	if recordOf(t, s, second).Base != first {
		t.Fatalf("the second pack is %+v", recordOf(t, s, second))
	}
	// The same chain stores the content again. Then another chain, which also has the base, stores
	// it.
	mustPut(t, s, two, first)
	mustPut(t, s, two, Root(nil), first)
	if recordOf(t, s, second).Base != first {
		t.Errorf("put by a chain that has the base made it %+v", recordOf(t, s, second))
	}
	// Another chain has the pack but not the base: a rollback.
	mustPut(t, s, two, Root(nil), second)
	if recordOf(t, s, second).Base != first {
		t.Errorf("put by the chain that has it made it %+v", recordOf(t, s, second))
	}
	// A chain has neither.
	mustPut(t, s, two, Root(nil))
	if record := recordOf(t, s, second); record.Base != "" {
		t.Errorf("another chain depends on the base of the first one: %+v", record)
	}
	remove(t, s.kv, s.keys.Pack(first))
	mustHave(t, s, two)
	// It can now be a base for both chains.
	three := mustPut(t, s, version(t, "argocd", 3), second)
	if record := recordOf(t, s, three); record.Base != second {
		t.Errorf("the third pack is %+v", record)
	}
}

// baseDamages returns damages to the base of a delta, with the results of a read and of another
// Put.
func baseDamages() map[string]struct {
	do func(t *testing.T, s *Store, base string)
	// missing is true if the base does not exist, so that Put may write the delta again.
	missing bool
	newer   bool
} {
	type damages = map[string]struct {
		do             func(t *testing.T, s *Store, base string)
		missing, newer bool
	}
	return damages{
		"Gone": {missing: true, do: func(t *testing.T, s *Store, base string) { remove(t, s.kv, s.keys.Pack(base)) }},
		"Frame": {do: func(t *testing.T, s *Store, base string) {
			flip(t, s.kv, s.keys.Pack(base), len(dump(t, s.kv, s.keys.Pack(base))[s.keys.Pack(base)])-1)
		}},
		"Magic":    {do: func(t *testing.T, s *Store, base string) { flip(t, s.kv, s.keys.Pack(base), 0) }},
		"Checksum": {do: func(t *testing.T, s *Store, base string) { flip(t, s.kv, s.keys.Pack(base), 5) }},
		"Cut": {do: func(t *testing.T, s *Store, base string) {
			write(t, s.kv, s.keys.Pack(base), dump(t, s.kv, s.keys.Pack(base))[s.keys.Pack(base)][:100])
		}},
		"Empty": {do: func(t *testing.T, s *Store, base string) { write(t, s.kv, s.keys.Pack(base), "") }},
		"OtherPack": {do: func(t *testing.T, s *Store, base string) {
			other := mustPut(t, s, []manifest.Object{object(t, "ConfigMap", "other", "1")})
			write(t, s.kv, s.keys.Pack(base), dump(t, s.kv, s.keys.Pack(other))[s.keys.Pack(other)])
		}},
		"OtherBody": {do: func(t *testing.T, s *Store, base string) {
			b, err := s.readBase(t.Context(), base)
			if err != nil {
				t.Fatal(err)
			}
			b.content[len(b.content)-5] ^= 1
			forged, err := seal(b.content, ChunkBytes)
			if err != nil {
				t.Fatal(err)
			}
			write(t, s.kv, s.keys.Pack(base), string(forged.record))
		}},
		"ADelta": {do: func(t *testing.T, s *Store, base string) {
			b, err := s.readBase(t.Context(), base)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := seal(b.content, ChunkBytes)
			if err != nil {
				t.Fatal(err)
			}
			delta, err := sealDelta(b.content, b, whole)
			if err != nil {
				t.Fatal(err)
			}
			write(t, s.kv, s.keys.Pack(base), string(delta))
		}},
		"Newer": {newer: true, do: func(t *testing.T, s *Store, base string) {
			value := []byte(dump(t, s.kv, s.keys.Pack(base))[s.keys.Pack(base)])
			value[3] = 9
			write(t, s.kv, s.keys.Pack(base), string(value))
		}},
	}
}

// TestDamagedBase: a damaged base is an error of each delta, which names both. A read never returns
// another pack's bytes, or reports a missing pack.
func TestDamagedBase(t *testing.T) {
	for name, tc := range baseDamages() {
		t.Run(name, func(t *testing.T) {
			s := New(storetest.NewMemory(), "/p", digester())
			base := mustPut(t, s, version(t, "argocd", 1))
			objects := version(t, "argocd", 2)
			root := mustPut(t, s, objects, base)
			tc.do(t, s, base)
			damaged := dump(t, s.kv, "/p")

			_, err := s.Objects(t.Context(), root)
			_, rebase := s.Rebase(t.Context(), root)
			for _, err := range []error{err, rebase} {
				var missing *MissingError
				var corrupt *CorruptError
				var newer *store.FormatError
				switch {
				case tc.missing:
					if !errors.As(err, &missing) || missing.Root != root || missing.Base != base {
						t.Errorf("got error %v", err)
					}
				case tc.newer:
					if !errors.As(err, &newer) || errors.As(err, &corrupt) {
						t.Errorf("got error %v", err)
					}
				case !errors.As(err, &corrupt) || corrupt.Root != root || corrupt.Base != base:
					t.Errorf("got error %v", err)
				}
				if !strings.Contains(err.Error(), strings.TrimPrefix(base, rootPrefix)) && !tc.newer {
					t.Errorf("the error does not name the base: %v", err)
				}
			}
			// The next revision of the chain is still stored, and depends on no damaged pack.
			next := mustPut(t, s, version(t, "argocd", 3), root, base)
			if record := recordOf(t, s, next); record.Base != "" {
				t.Errorf("the next pack is %+v", record)
			}
			remove(t, s.kv, s.keys.Pack(next))

			_, err = s.PutInChain(t.Context(), objects, []string{base})
			if tc.missing {
				if err != nil {
					t.Fatalf("putting it again: %v", err)
				}
				mustHave(t, s, objects)
				return
			}
			if err == nil {
				t.Error("putting it again passed over the damage")
			}
			if diff := cmp.Diff(damaged, dump(t, s.kv, "/p")); diff != "" {
				t.Errorf("put changed the evidence:\n%s", diff)
			}
		})
	}
}

// TestRebase: Rebase makes a delta whole. Its base can then be deleted, and its content is
// unchanged.
func TestRebase(t *testing.T) {
	s := New(storetest.NewMemory(), "/p", digester())
	base := mustPut(t, s, version(t, "argocd", 1))
	objects := version(t, "argocd", 2)
	root := mustPut(t, s, objects, base)
	for _, want := range []bool{true, false} {
		if wrote, err := s.Rebase(t.Context(), root); err != nil || wrote != want {
			t.Fatalf("rebase wrote: %t, want %t, error %v", wrote, want, err)
		}
	}
	if record := recordOf(t, s, root); record.Base != "" {
		t.Errorf("after the rebase, the pack is %+v", record)
	}
	remove(t, s.kv, s.keys.Pack(base))
	mustHave(t, s, objects)
	_, err := s.Rebase(t.Context(), base)
	if !errors.As(err, new(*MissingError)) {
		t.Errorf("a pack that is not there: %v", err)
	}
}

// TestRebaseOnto: a base is freed when its deltas become deltas against a newer base, if that saves
// enough.
func TestRebaseOnto(t *testing.T) {
	s := New(storetest.NewMemory(), "/p", digester())
	base := mustPut(t, s, version(t, "argocd", 0))
	objects := version(t, "argocd", 1)
	root := mustPut(t, s, objects, base)
	newer := mustPut(t, s, version(t, "argocd", 2))
	unlike := mustPut(t, s, noise(t, 4, 3000))
	delta := mustPut(t, s, version(t, "argocd", 3), newer)

	for _, left := range []string{base, root, unlike, delta, Root(nil)} {
		if wrote, err := s.RebaseOnto(t.Context(), root, left); wrote || err != nil || recordOf(t, s, root).Base != base {
			t.Errorf("onto %s: wrote %t, error %v, the pack is %+v", left, wrote, err, recordOf(t, s, root))
		}
	}
	if wrote, err := s.RebaseOnto(t.Context(), root, newer); !wrote || err != nil || recordOf(t, s, root).Base != newer {
		t.Errorf("onto a newer one: wrote %t, error %v, the pack is %+v", wrote, err, recordOf(t, s, root))
	}
	if wrote, err := s.RebaseOnto(t.Context(), newer, base); wrote || err != nil || recordOf(t, s, newer).Base != "" {
		t.Errorf("a base became a delta: %+v, error %v", recordOf(t, s, newer), err)
	}
	remove(t, s.kv, s.keys.Pack(base))
	mustHave(t, s, objects)
}

// TestRebaseCrash: a whole pack may need chunks although its delta did not. A crash after any write
// leaves the delta or the whole pack.
func TestRebaseCrash(t *testing.T) {
	client := storetest.Client(t)
	for _, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite} {
		for writes := 0; ; writes++ {
			prefix := fmt.Sprintf("/%d-%s", writes, strings.ReplaceAll(string(how), " ", "-"))
			s := New(client, prefix, digester())
			base := mustPut(t, s, version(t, "argocd", 1))
			objects := version(t, "argocd", 2)
			root := mustPut(t, s, objects, base)
			kv := storetest.NewCrashingKV(client, writes, how)
			wrote, err := chunked(New(kv, prefix, digester()), 1500).Rebase(t.Context(), root)
			mustHave(t, s, objects)
			if !kv.Crashed() {
				if err != nil || !wrote || len(recordOf(t, s, root).Chunks) == 0 {
					t.Errorf("rebase without a crash wrote: %t, error %v, the pack is %+v", wrote, err, recordOf(t, s, root))
				}
				break
			}
			if _, err := s.Rebase(t.Context(), root); err != nil {
				t.Errorf("crash at write %d %s: rebase again: %v", writes, how, err)
			}
			mustHave(t, s, objects)
		}
	}
}

// disturbedKV calls a function before the first transactions.
type disturbedKV struct {
	clientv3.KV
	times   int
	disturb func()
}

func (d *disturbedKV) Txn(ctx context.Context) clientv3.Txn {
	if d.times > 0 {
		d.times--
		d.disturb()
	}
	return d.KV.Txn(ctx)
}

// TestBaseChanges: a base is deleted after it was read and before the delta is written: the delta
// is not written against it. A base that is written again is read again, and the delta is written.
func TestBaseChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(t *testing.T, s *Store, base string)
		delta   bool
	}{
		"Deleted": {disturb: func(t *testing.T, s *Store, base string) {
			_, err := s.kv.Delete(t.Context(), s.keys.Pack(base))
			if err != nil {
				t.Fatal(err)
			}
		}},
		"Rewritten": {delta: true, disturb: func(t *testing.T, s *Store, base string) {
			write(t, s.kv, s.keys.Pack(base), dump(t, s.kv, s.keys.Pack(base))[s.keys.Pack(base)])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			memory := storetest.NewMemory()
			s := New(memory, "/p", digester())
			base := mustPut(t, s, version(t, "argocd", 1))
			kv := &disturbedKV{KV: memory, times: 2, disturb: func() { tc.disturb(t, s, base) }}
			root := mustPut(t, New(kv, "/p", digester()), version(t, "argocd", 2), base)
			if record := recordOf(t, s, root); tc.delta != (record.Base == base) {
				t.Errorf("the pack is %+v", record)
			}
		})
	}
}

// TestSameContentTwice: two creates with the same content, by chains with different bases, leave a
// pack that both can read. The same holds for a pack that was made whole meanwhile.
func TestSameContentTwice(t *testing.T) {
	memory := storetest.NewMemory()
	s := New(memory, "/p", digester())
	first, other := mustPut(t, s, version(t, "argocd", 1)), mustPut(t, s, version(t, "argocd", 0))
	objects := version(t, "argocd", 2)
	kv := &disturbedKV{KV: memory, times: 1, disturb: func() { mustPut(t, s, objects, other) }}
	root := mustPut(t, New(kv, "/p", digester()), objects, first)
	if record := recordOf(t, s, root); record.Base != "" {
		t.Errorf("the pack of both is %+v", record)
	}

	third := version(t, "argocd", 3)
	root = mustPut(t, s, third, first)
	kv = &disturbedKV{KV: memory, times: 1, disturb: func() { mustPut(t, s, third) }}
	if wrote, err := New(kv, "/p", digester()).Rebase(t.Context(), root); err != nil || wrote {
		t.Errorf("rebase of what was made whole meanwhile wrote: %t, error %v", wrote, err)
	}
	mustHave(t, s, third)
}

// TestDeltasAreRead: for random writes of chains, every pack is read as it was written. No base is
// a delta, or belongs only to another chain.
func TestDeltasAreRead(t *testing.T) {
	versions := make([][]manifest.Object, 8)
	for n := range versions {
		versions[n] = version(t, "argocd", n)
	}
	rapid.Check(t, func(r *rapid.T) {
		s := New(storetest.NewMemory(), "/p", digester())
		chains := map[string][]string{}
		put := map[string][]manifest.Object{}
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			chain := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "chain")
			objects := rapid.SampledFrom(versions).Draw(r, "version")
			root, err := s.PutInChain(t.Context(), objects, chains[chain])
			if err != nil {
				r.Fatalf("put: %v", err)
			}
			put[root] = objects
			chains[chain] = slices.Insert(slices.DeleteFunc(chains[chain], func(other string) bool { return other == root }), 0, root)
			if rapid.IntRange(0, 5).Draw(r, "rebase") == 0 {
				if _, err := s.Rebase(t.Context(), rapid.SampledFrom(chains[chain]).Draw(r, "whole")); err != nil {
					r.Fatalf("rebase: %v", err)
				}
			}
		}
		for _, objects := range put {
			mustHave(t, s, objects)
		}
		for name, roots := range chains {
			for _, root := range roots {
				if base := recordOf(t, s, root).Base; base != "" && (!slices.Contains(roots, base) || recordOf(t, s, base).Base != "") {
					r.Fatalf("pack %s of chain %s is a delta against %s, and the chain has %v", root, name, base, roots)
				}
			}
		}
	})
}

// TestLargestDelta: the largest delta against the largest base can be read. The compressor finds
// common content at a distance of 4 MiB.
func TestLargestDelta(t *testing.T) {
	s := New(storetest.NewMemory(), "/p", digester())
	large := func(n int) []manifest.Object {
		objects := noise(t, 1, 300_000)
		filler := object(t, "ConfigMap", "filler", strings.Repeat("filler ", (maxDeltaContent-310_000)/7))
		return append(append(objects, filler), object(t, "ConfigMap", "version", fmt.Sprint(n)))
	}
	base := mustPut(t, s, large(1))
	root := mustPut(t, s, large(2), base)
	record := recordOf(t, s, root)
	if record.Base != base || record.StoredBytes > 2000 || record.ContentBytes < maxDeltaContent-20_000 {
		t.Errorf("the pack is %+v, its base %+v", record, recordOf(t, s, base))
	}
}

// TestReadBesideCollector: a delta is rebased between the two reads of a reader, and its old base
// is collected. The reader gets no error.
func TestReadBesideCollector(t *testing.T) {
	memory := storetest.NewMemory()
	s := New(memory, "/p", digester())
	first, second := version(t, "op", 1), version(t, "op", 2)
	base := mustPut(t, s, first)
	root := mustPut(t, s, second, base)
	if recordOf(t, s, root).Base != base {
		t.Fatal("the second pack is no delta")
	}
	operations := 0
	memory.Before = func(ctx context.Context) {
		if operations++; operations != 2 {
			return
		}
		if _, err := s.Rebase(ctx, root); err != nil {
			t.Error(err)
		}
		remove(t, memory, s.keys.Pack(base))
	}
	got, err := s.Objects(t.Context(), root)
	if err != nil || len(got) != len(second) {
		t.Errorf("reading it while it is rebased: got %d objects, want %d: %v", len(got), len(second), err)
	}
	memory.Before = nil
	remove(t, memory, s.keys.Pack(root))
	if _, err := s.Objects(t.Context(), root); !errors.As(err, new(*MissingError)) {
		t.Errorf("reading it when it is gone: got %v", err)
	}
}
