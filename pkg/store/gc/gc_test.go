package gc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/references"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

const prefix = "/p"

// bench is a store with packs, and records that refer to them. A record is the root of its pack, in
// plain text.
type bench struct {
	t     *testing.T
	kv    clientv3.KV
	keys  store.Keys
	packs *pack.Store
}

func on(t *testing.T, kv clientv3.KV) *bench {
	return &bench{t: t, kv: kv, keys: store.NewKeys(prefix), packs: pack.New(kv, prefix, manifest.Digester{})}
}

func decoders() references.Decoders {
	return references.Decoders{"clusterextensionrevisions": func(key string, record []byte) ([]string, error) {
		if string(record) == "damaged" {
			return nil, &store.DamagedError{Kind: "revision", Key: key, Err: errors.New("by the test")}
		}
		return []string{string(record)}, nil
	}}
}

func (s *bench) collector(kv clientv3.KV) *Collector {
	return New(kv, references.NewSource(kv, prefix, decoders()), pack.New(kv, prefix, manifest.Digester{}))
}

// common returns the text that all contents share. It does not compress, so a pack with it is
// stored as a delta.
func common() string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 2000)
	for i := range text {
		text[i] = byte('0' + random.IntN(64))
	}
	return string(text)
}

func content(text string) []manifest.Object {
	text += common()
	object, err := manifest.Digester{}.FromJSON([]byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":%q}}`, text)))
	if err != nil {
		panic(err)
	}
	return []manifest.Object{object}
}

func (s *bench) record(name string) string {
	return s.keys.All() + "g.io/clusterextensionrevisions/" + name
}

// create stores a pack and the record that refers to it, as the API does. It starts again if the
// pack was collected meanwhile.
func (s *bench) create(ctx context.Context, name, text string) error {
	for range 5 {
		chain, err := s.roots(ctx)
		if err != nil {
			return err
		}
		root, err := s.packs.PutInChain(ctx, content(text), chain)
		if err != nil {
			return err
		}
		_, done, err := store.Swap(ctx, s.kv, s.record(name), []byte(root), 0, store.Referable(s.keys, root)...)
		if err != nil || done {
			return err
		}
		if found, err := store.Get(ctx, s.kv, s.record(name)); err != nil || found.Exists() {
			return err
		}
	}
	return errors.New("collected five times")
}

// roots returns the referenced roots.
func (s *bench) roots(ctx context.Context) ([]string, error) {
	found, err := s.kv.Get(ctx, s.keys.All()+"g.io/", clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, kv := range found.Kvs {
		roots = append(roots, string(kv.Value))
	}
	return roots, nil
}

func (s *bench) delete(ctx context.Context, name string) error {
	_, err := s.kv.Delete(ctx, s.record(name))
	return err
}

func (s *bench) deleteAll(ctx context.Context) error {
	_, err := s.kv.Delete(ctx, s.keys.All()+"g.io/", clientv3.WithPrefix())
	return err
}

// holds checks that every record's pack exists. With clean, there must be no other pack.
func (s *bench) holds(at string, clean bool) {
	s.t.Helper()
	ctx := s.t.Context()
	found, err := s.kv.Get(ctx, s.keys.All()+"g.io/", clientv3.WithPrefix())
	if err != nil {
		s.t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, kv := range found.Kvs {
		wanted[string(kv.Value)] = true
		if _, err := s.packs.Read(ctx, string(kv.Value)); err != nil {
			s.t.Errorf("%s: %s: %v", at, kv.Key, err)
		}
	}
	if !clean {
		return
	}
	if there := s.parts(); len(there) != len(wanted) {
		s.t.Errorf("%s: %d packs are needed, and there is %v", at, len(wanted), there)
	}
	for _, key := range s.parts() {
		if !strings.HasSuffix(key, "/pack") {
			s.t.Errorf("%s: %s is left", at, key)
		}
	}
}

func (s *bench) parts() []string {
	s.t.Helper()
	found, err := s.kv.Get(s.t.Context(), s.keys.Packs(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		s.t.Fatal(err)
	}
	var keys []string
	for _, kv := range found.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

func (s *bench) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *bench) collect() Result {
	s.t.Helper()
	c := s.collector(s.kv)
	s.must(c.Begin(s.t.Context()))
	result, err := c.Collect(s.t.Context())
	s.must(err)
	return result
}

func TestCollect(t *testing.T) {
	etcd := storetest.Client(t)
	s := on(t, etcd)
	ctx := t.Context()
	for i := range 60 {
		s.must(s.create(ctx, fmt.Sprint("kept-", i%30), fmt.Sprint("kept", i%30)))
		_, err := s.packs.Put(ctx, content(fmt.Sprint("gone", i)))
		s.must(err)
	}
	// These keys are left by a crash in the middle of a large pack, and by a collector that died.
	for _, key := range []string{s.keys.Chunk("sha256:"+strings.Repeat("a", 64), "b"), s.keys.Candidate("sha256:" + strings.Repeat("b", 64))} {
		_, err := etcd.Put(ctx, key, "x")
		s.must(err)
	}
	if diff := cmp.Diff(Result{Packs: 60, Chunks: 1, Present: 30}, s.collect()); diff != "" {
		t.Errorf("a collection (-want +got):\n%s", diff)
	}
	s.holds("after it", true)

	before := storetest.Revision(t, etcd)
	if diff := cmp.Diff(Result{Present: 30}, s.collect()); diff != "" {
		t.Errorf("another one (-want +got):\n%s", diff)
	}
	if after := storetest.Revision(t, etcd); after != before+1 {
		t.Errorf("a collection with nothing to do wrote %d times, want 1, for who collects", after-before)
	}
}

// TestBases: a base stays as long as two packs need it. The last pack that needs it is made whole.
func TestBases(t *testing.T) {
	s := on(t, storetest.Client(t))
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		s.must(s.create(ctx, name, name))
	}
	s.must(s.delete(ctx, "a"))
	if got := s.collect(); got != (Result{Present: 3}) {
		t.Errorf("two packs need a base: %+v", got)
	}
	s.must(s.delete(ctx, "b"))
	if got := s.collect(); got != (Result{Packs: 2, Rebased: 1, Present: 1}) {
		t.Errorf("one pack needs a base: %+v", got)
	}
	s.holds("whole", true)
	s.must(s.create(ctx, "d", "d"))
	s.must(errors.Join(s.delete(ctx, "c"), s.delete(ctx, "d")))
	if got := s.collect(); got != (Result{Packs: 2}) {
		t.Errorf("nothing needs them: %+v", got)
	}
}

// TestRebaseOnto: a base without a revision is deleted as soon as its chain has a newer whole pack.
// Its deltas become deltas against the newer pack, except a pack that another chain also has.
func TestRebaseOnto(t *testing.T) {
	s := on(t, storetest.Client(t))
	ctx := t.Context()
	for _, name := range []string{"argocd-1", "argocd-2", "argocd-3"} {
		s.must(s.create(ctx, name, name))
	}
	s.must(s.create(ctx, "other-1", "argocd-3"))
	// The newer pack is whole.
	root, err := s.packs.Put(ctx, content("argocd-4"))
	s.must(err)
	_, _, err = store.Swap(ctx, s.kv, s.record("argocd-4"), []byte(root), 0)
	s.must(err)
	s.must(s.delete(ctx, "argocd-1"))
	if got := s.collect(); got != (Result{Packs: 1, Rebased: 2, Present: 3}) {
		t.Errorf("collected %+v", got)
	}
	s.holds("rebased", true)
	if got := s.collect(); got != (Result{Present: 3}) {
		t.Errorf("once more: %+v", got)
	}
}

// TestPutOff: one collection writes a limited amount, and reports that work is left. Later
// collections finish it. Work that is impossible is not put off for ever.
func TestPutOff(t *testing.T) {
	memory := storetest.NewMemory()
	s := on(t, memory)
	ctx := t.Context()
	for i := range 6 {
		_, err := s.packs.Put(ctx, content(fmt.Sprint("gone", i)))
		s.must(err)
	}
	// Four packs have separate bases without other references.
	for i := range 4 {
		base, err := s.packs.Put(ctx, content(fmt.Sprint("base", i)))
		s.must(err)
		root, err := s.packs.PutInChain(ctx, content(fmt.Sprint("kept", i)), []string{base})
		s.must(err)
		_, _, err = store.Swap(ctx, memory, s.record(fmt.Sprint("kept-", i)), []byte(root), 0)
		s.must(err)
	}
	c := s.collector(memory)
	c.limits = limits{named: 4, rebased: 1}
	s.must(c.Begin(ctx))
	var got []Result
	for range 10 {
		result, err := c.Collect(ctx)
		s.must(err)
		s.holds("in between", false)
		got = append(got, result)
		if result.PutOff == 0 {
			break
		}
	}
	want := []Result{
		{Packs: 4, Rebased: 1, PutOff: 6, Present: 10}, {Packs: 4, Rebased: 1, PutOff: 2, Present: 6},
		{Packs: 1, Rebased: 1, PutOff: 1, Present: 5}, {Packs: 1, Rebased: 1, Present: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("collections (-want +got):\n%s", diff)
	}
	s.holds("at the end", true)
}

// TestReserved: packs of an import stay until the import ends.
func TestReserved(t *testing.T) {
	etcd := storetest.Client(t)
	s := on(t, etcd)
	reserved, release, err := s.packs.Reserve(t.Context(), etcd)
	s.must(err)
	_, err = s.packs.Put(t.Context(), content("old"))
	s.must(err)
	for _, text := range []string{"old", "new"} {
		_, err := s.packs.Put(reserved, content(text))
		s.must(err)
	}
	if got := s.collect(); got.Packs != 0 || got.Present != 2 {
		t.Errorf("during an import: %+v", got)
	}
	release()
	if got := s.collect(); got.Packs != 2 {
		t.Errorf("after it: %+v", got)
	}
	s.holds("at the end", true)
}

// TestHeld: while the references of a record are unknown, nothing is deleted.
func TestHeld(t *testing.T) {
	memory := storetest.NewMemory()
	s := on(t, memory)
	ctx := t.Context()
	_, err := s.packs.Put(ctx, content("gone"))
	s.must(err)
	_, err = memory.Put(ctx, s.record("bad"), "damaged")
	s.must(err)
	c := s.collector(memory)
	s.must(c.Begin(ctx))
	var held *HeldError
	if _, err := c.Collect(ctx); !errors.As(err, &held) || !strings.Contains(err.Error(), s.record("bad")) {
		t.Errorf("a collection beside a damaged record: %v", err)
	}
	if len(s.parts()) != 1 {
		t.Errorf("there is %v", s.parts())
	}
	s.must(s.delete(ctx, "bad"))
	if got, err := c.Collect(ctx); err != nil || got.Packs != 1 {
		t.Errorf("without it: %+v, %v", got, err)
	}
}

// TestSuperseded: a new collector takes over the candidates of an earlier collector. The earlier
// collector writes nothing any more, at any point.
func TestSuperseded(t *testing.T) {
	for k := 0; ; k++ {
		memory := storetest.NewMemory()
		s := on(t, memory)
		for i := range 3 {
			_, err := s.packs.Put(t.Context(), content(fmt.Sprint(i)))
			s.must(err)
		}
		kv := storetest.NewCrashingKV(memory.Client(t.Context()), k, storetest.Disturbed)
		former := s.collector(kv)
		var left []string
		var revision int64
		kv.Disturb = func() {
			next := s.collector(memory)
			s.must(next.Begin(t.Context()))
			left, revision = s.parts(), storetest.Revision(t, memory)
		}
		err := former.Begin(t.Context())
		if err == nil {
			_, err = former.Collect(t.Context())
		}
		if !kv.Failed() {
			break
		}
		if k > 0 && (!errors.Is(err, ErrSuperseded) || storetest.Revision(t, memory) != revision) {
			t.Errorf("disturbed at write %d: %v, and wrote at %d after %d", k, err, storetest.Revision(t, memory), revision)
		}
		if k > 0 && !slices.Equal(left, s.parts()) {
			t.Errorf("disturbed at write %d: there was %v, and is %v", k, left, s.parts())
		}
		s.collect()
		s.holds(fmt.Sprint("disturbed at write ", k), true)
	}
}

// collects runs a collection of a process that may die.
func collects(s *bench) error {
	c := s.collector(s.kv)
	if err := c.Begin(s.t.Context()); err != nil {
		return err
	}
	_, err := c.Collect(s.t.Context())
	return err
}

// others returns the writes of other processes during a collection. The store has the record "kept"
// with its pack. It also has an unreferenced pack "gone" that is compressed against that pack.
func others(t *testing.T) map[string]func(*bench) error {
	return map[string]func(*bench) error{
		"create of what is collected": func(s *bench) error { return s.create(t.Context(), "new", "gone") },
		"create of another":           func(s *bench) error { return s.create(t.Context(), "new", "other") },
		"create of what is there":     func(s *bench) error { return s.create(t.Context(), "new", "kept") },
		"delete":                      func(s *bench) error { return s.delete(t.Context(), "kept") },
		"delete, create": func(s *bench) error {
			return errors.Join(s.delete(t.Context(), "kept"), s.create(t.Context(), "new", "kept"))
		},
		"create, delete the base": func(s *bench) error {
			return errors.Join(s.create(t.Context(), "new", "other"), s.delete(t.Context(), "kept"))
		},
		"create in front, delete": func(s *bench) error {
			return errors.Join(s.create(t.Context(), "a", "gone"), s.delete(t.Context(), "kept"))
		},
		"create, delete": func(s *bench) error {
			return errors.Join(s.create(t.Context(), "new", "gone"), s.delete(t.Context(), "new"))
		},
		"collect": collects,
	}
}

// started returns a store in the state that others describes.
func started(t *testing.T, memory *storetest.Memory) *bench {
	s := on(t, memory)
	s.must(s.create(t.Context(), "kept", "kept"))
	roots, err := s.roots(t.Context())
	s.must(err)
	_, err = s.packs.PutInChain(t.Context(), content("gone"), roots)
	s.must(err)
	return s
}

// pagesKV reads pages of one record, and calls a function before a page or a transaction.
type pagesKV struct {
	clientv3.KV
	left    int
	disturb func()
}

func (p *pagesKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	p.step()
	if limit := clientv3.OpGet(key, opts...).Limit(); limit > 1 {
		opts = append(opts, clientv3.WithLimit(1))
	}
	return p.KV.Get(ctx, key, opts...)
}

func (p *pagesKV) Txn(ctx context.Context) clientv3.Txn {
	p.step()
	return p.KV.Txn(ctx)
}

func (p *pagesKV) step() {
	if p.left--; p.left == -1 {
		p.disturb()
	}
}

// TestPages executes writes of other processes before each page that a collection reads. So the
// collection sees some records before and some after the write. It must not delete a pack that a
// record needs. The test also executes pairs of writes before any two pages. It samples every 149th
// pair; FULL=1 runs all.
func TestPages(t *testing.T) {
	points := 0
	run := func(first, second func(*bench) error, at string, k, l int) (ended bool) {
		memory := storetest.NewMemory()
		s := started(t, memory)
		inner := &pagesKV{KV: memory, left: l, disturb: func() { s.must(second(s)) }}
		outer := &pagesKV{KV: inner, left: k, disturb: func() { s.must(first(s)) }}
		if err := collects(on(t, outer)); err != nil && !errors.Is(err, ErrSuperseded) {
			t.Errorf("%s: %v", at, err)
		}
		points++
		s.holds(at, false)
		s.collect()
		s.holds(at+", collected", false)
		// A base that two packs need stays. So the store must be empty only after all records are
		// deleted.
		s.must(s.deleteAll(t.Context()))
		s.collect()
		s.holds(at+", all deleted and collected", true)
		return outer.left >= 0 || inner.left >= 0
	}
	for name, first := range others(t) {
		for k := 0; !run(first, func(*bench) error { return nil }, fmt.Sprintf("%s at page %d", name, k), k, 0); k++ {
		}
	}
	// A collection reads fewer pages.
	const most = 48
	step, pair := 149, 0
	if os.Getenv("FULL") == "1" {
		step = 1
	}
	for name, first := range others(t) {
		for other, second := range others(t) {
			for k := range most {
				for l := k; l < most; l++ {
					if pair++; pair%step == 0 {
						run(first, second, fmt.Sprintf("%s at page %d, %s at page %d", name, k, other, l), k, l)
					}
				}
			}
		}
	}
	t.Logf("%d points", points)
}

// TestRaces executes writes of other processes before each write of a collector, and a collection
// before each of their writes. Either process may die at that point. Afterwards every record has
// its pack, and another collection leaves no other pack.
func TestRaces(t *testing.T) {
	points := 0
	run := func(name string, how storetest.Crash, outer, inner func(*bench) error) {
		for k := 0; ; k++ {
			memory := storetest.NewMemory()
			start := started(t, memory)
			kv := storetest.NewCrashingKV(memory.Client(t.Context()), k, how)
			at := fmt.Sprintf("%s, %s, write %d", name, how, k)
			kv.Disturb = func() { start.must(inner(start)) }
			err := outer(on(t, kv))
			if !kv.Failed() {
				return
			}
			points++
			if how == storetest.Disturbed && err != nil && !errors.Is(err, ErrSuperseded) {
				t.Errorf("%s: %v", at, err)
			}
			if how != storetest.Disturbed {
				start.must(inner(start))
			}
			start.holds(at, false)
			start.collect()
			start.holds(at+", collected", true)
		}
	}
	for name, other := range others(t) {
		for _, how := range []storetest.Crash{storetest.Disturbed, storetest.BeforeWrite, storetest.AfterWrite} {
			run(name+" within a collection", how, collects, other)
			run("a collection within "+name, how, other, func(s *bench) error { s.collect(); return nil })
		}
	}
	t.Logf("%d points", points)
}
