package olm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/records"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/fsck"
	"github.com/penstock-project/penstock/pkg/store/gc"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/references"
	"github.com/penstock-project/penstock/pkg/store/run"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// collects deletes everything unreferenced through a KV.
func collects(ctx context.Context, kv clientv3.KV) error {
	_, err := collected(ctx, kv)
	return err
}

// collected works like collects, and returns the result.
func collected(ctx context.Context, kv clientv3.KV) (gc.Result, error) {
	collector := gc.New(kv, references.NewSource(kv, prefix, records.Decoders()), pack.New(kv, prefix, testDigester()))
	if err := collector.Begin(ctx); err != nil {
		return gc.Result{}, err
	}
	return collector.Collect(ctx)
}

// incompressible returns a text so long that a pack with it is stored as a delta.
func incompressible() string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 2000)
	for i := range text {
		text[i] = byte('0' + random.IntN(64))
	}
	return string(text)
}

func testDigester() manifest.Digester {
	return manifest.Digester{SecretKey: []byte("0123456789abcdef0123456789abcdef")}
}

// program returns writes that store manifests, release them or collect them.
func program(archive string, kv clientv3.KV, rebased *int) []act {
	collect := func(_ *bench, ctx context.Context) error {
		result, err := collected(ctx, kv)
		*rebased += result.Rebased
		return err
	}
	gone := func(name string) act {
		return func(b *bench, ctx context.Context) error {
			if err := deletes(name, metav1.DeletePropagationBackground)(b, ctx); err != nil {
				return err
			}
			err := updates(name, unfinished)(b, ctx)
			if apierrors.IsNotFound(err) {
				return nil // it had no finalizer
			}
			return err
		}
	}
	back := func(b *bench, ctx context.Context) error {
		_, err := b.rollback.Create(ctx, "e-4", &v1alpha1.RevisionRollback{Spec: v1alpha1.RevisionRollbackSpec{From: "e-5"}}, nil, &metav1.CreateOptions{})
		return err
	}
	return []act{
		imports(archive), creates(4, "a"), creates(5, "ab"), runs(kv, 1), back,
		updates("e-4", setState(hub.LifecycleStateArchived)), gone("e-3"), collect,
		creates(7, "abc"), runs(kv, 2), gone("e-2"), gone("e-5"), creates(8, "ab"), collect, gone("e-8"), forgets(kv), collect,
	}
}

// runs stores the content of a run of a plan, and then the run, as the plan controller does. It
// starts again if the content was collected meanwhile.
func runs(kv clientv3.KV, number int64) act {
	return func(b *bench, ctx context.Context) error {
		packs, rows := pack.New(kv, prefix, testDigester()), run.New(kv, prefix)
		for {
			var roots []string
			for _, name := range []string{"after", "before"} {
				object, err := testDigester().New(configMap(name, fmt.Sprint(b.text, name, number)))
				if err != nil {
					return err
				}
				root, err := packs.Put(ctx, []manifest.Object{object})
				if err != nil {
					return err
				}
				roots = append(roots, root)
			}
			body, err := json.Marshal(hcov1alpha1.PlanRun{Plan: "uid", Run: number, Manifests: roots[0], Captured: roots[1]})
			if err != nil {
				return err
			}
			err = rows.Put(ctx, "plan", run.Row{Plan: "uid", Number: number, Body: body}, roots...)
			if !errors.As(err, new(*store.CollectedError)) {
				return err
			}
		}
	}
}

// forgets deletes the first run, as storing the fifty-first run does.
func forgets(kv clientv3.KV) act {
	return func(_ *bench, ctx context.Context) error {
		key := store.NewKeys(prefix).Runs("plan")
		stored, err := store.Get(ctx, kv, key)
		if err != nil || !stored.Exists() {
			return err
		}
		if _, err := kv.Delete(ctx, key); err != nil {
			return err
		}
		rows, err := run.Decode(key, stored.Bytes)
		if err != nil {
			return err
		}
		did := &hcov1alpha1.PlanRun{}
		if err := json.Unmarshal(rows[0].Body, did); err != nil {
			return err
		}
		return run.New(kv, prefix).Put(ctx, "plan", rows[0], did.Manifests, did.Captured)
	}
}

// sound runs fsck on a store and reads all revisions. It returns the number of packs that are
// deltas.
func sound(t *testing.T, b *bench, kv clientv3.KV, at string, clean bool) (deltas int) {
	t.Helper()
	ctx := as(t.Context(), "abc")
	for name, revision := range b.all(ctx) {
		// Contents compares every digest with the list of the revision.
		if _, err := b.revisions.Contents(ctx, revision); err != nil {
			t.Errorf("%s: the manifests of %s: %v", at, name, err)
		}
	}
	report, err := fsck.Check(ctx, fsck.Options{Source: references.NewSource(kv, prefix, records.Decoders()), KV: kv, Prefix: prefix, Digester: testDigester()})
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range report.Problems {
		if clean || problem.Kind != fsck.LeftOver {
			t.Errorf("%s: %+v", at, problem)
		}
	}
	return report.Deltas
}

// TestCollectionCrashes kills a program at every write, before or after etcd executes it, on a real
// etcd. The program creates, upgrades, rolls back, imports, runs plans, deletes and collects.
// Afterwards every revision can be read, and no pack is missing. After another collection, no pack
// is unreferenced. The test samples every ninth write, or every write with FULL=1.
func TestCollectionCrashes(t *testing.T) {
	etcd := storetest.Client(t)
	text := incompressible()
	archive := newArchived(t).deleted(1).
		revision(2, "Archived", nil, configMap("a", text+"a"), secret("s", "x")).
		revision(3, "Active", nil, configMap("a", text+"b"), secret("s", "x")).String()
	step := 9
	if os.Getenv("FULL") == "1" {
		step = 1
	}
	points, deltas, rebased := 0, 0, 0
	for i, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite} {
		for k := i; ; k += step {
			at := fmt.Sprintf("killed %s %d", how, k)
			if _, err := etcd.Delete(t.Context(), "/", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
			kv := storetest.NewCrashingKV(etcd, k, how)
			b := newBenchOn(t, storetest.NewMemory(), kv)
			b.text = text
			for n, do := range program(archive, kv, &rebased) {
				if err := do(b, as(t.Context(), "abc")); err != nil && !kv.Crashed() {
					t.Fatalf("%s: step %d: %v", at, n, err)
				}
				if kv.Crashed() {
					break
				}
			}
			again := newBenchOn(t, storetest.NewMemory(), etcd)
			deltas += sound(t, again, etcd, at, false)
			result, err := collected(t.Context(), etcd)
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			rebased += result.Rebased
			deltas += sound(t, again, etcd, at+", collected", true)
			if !kv.Crashed() {
				break
			}
			points++
		}
	}
	t.Logf("%d points, %d deltas, %d rebased", points, deltas, rebased)
	if points < 10 || deltas < points || rebased < points/4 {
		t.Errorf("%d points were tried, with %d deltas, and %d packs were rebased", points, deltas, rebased)
	}
}

// TestCollectionRaces collects everything before each write of a create, a rollback and an import.
// A second case uses a collector that read the store before the request began. The request
// succeeds, and all of its manifests exist.
func TestCollectionRaces(t *testing.T) {
	etcd := storetest.Client(t)
	for name, w := range writes(t) {
		if name != "create" && name != "first" && name != "rollback" && name != "import" {
			continue
		}
		k := 0
		for ; ; k++ {
			at := fmt.Sprintf("%s, collected before write %d", name, k)
			if _, err := etcd.Delete(t.Context(), "/", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
			ctx := as(t.Context(), "abc")
			kv := storetest.NewCrashingKV(etcd, k, storetest.Disturbed)
			b := newBenchOn(t, storetest.NewMemory(), kv)
			b.reserve(etcd)
			if !w.empty {
				for _, do := range []act{creates(1, "ac"), creates(2, "bc")} {
					if err := do(newBenchOn(t, storetest.NewMemory(), etcd), ctx); err != nil {
						t.Fatal(err)
					}
				}
			}
			kv.Disturb = func() {
				if err := collects(t.Context(), etcd); err != nil {
					t.Errorf("%s: %v", at, err)
				}
			}
			if err := w.act(b, ctx); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			sound(t, b, etcd, at, false)
			if err := errors.Join(collects(t.Context(), etcd), w.next(b, ctx)); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			sound(t, b, etcd, at+", and the next revision", true)
			if !kv.Failed() {
				break
			}
		}
		if k < 3 {
			t.Errorf("%s: %d writes were tried", name, k)
		}
	}
}

// TestCollectedMeanwhile: an import fails if its reservation expired while its process was
// suspended. It can be repeated. No record refers to a missing pack.
func TestCollectedMeanwhile(t *testing.T) {
	etcd := storetest.Client(t)
	ctx := as(t.Context(), "abc")
	archive := sample(t).String()
	refused := 0
	for k := 0; ; k++ {
		if _, err := etcd.Delete(t.Context(), "/", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		kv := storetest.NewCrashingKV(etcd, k, storetest.Disturbed)
		b := newBenchOn(t, storetest.NewMemory(), kv)
		kv.Disturb = func() {
			if err := collects(t.Context(), etcd); err != nil {
				t.Error(err)
			}
		}
		err := imports(archive)(b, ctx)
		if err != nil {
			refused++
			if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "try again") {
				t.Errorf("collected before write %d: %v", k, err)
			}
			if err := imports(archive)(b, ctx); err != nil {
				t.Errorf("collected before write %d, the same again: %v", k, err)
			}
		}
		sound(t, b, etcd, fmt.Sprint("collected before write ", k), false)
		if !kv.Failed() {
			break
		}
	}
	if refused == 0 {
		t.Error("an import was never told that its manifests were collected")
	}
}

// TestReadOfCollected: a user reads the manifests of a revision that was deleted and collected
// meanwhile. The answer is NotFound, and does not report a damaged store.
func TestReadOfCollected(t *testing.T) {
	etcd := storetest.Client(t)
	ctx := as(t.Context(), "abc")
	b := newBenchOn(t, storetest.NewMemory(), etcd)
	if err := creates(1, "ab")(b, ctx); err != nil {
		t.Fatal(err)
	}
	read := b.all(ctx)["e-1"]
	if err := errors.Join(deletes("e-1", metav1.DeletePropagationBackground)(b, ctx), updates("e-1", unfinished)(b, ctx), collects(ctx, etcd)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.revisions.Contents(ctx, read); !apierrors.IsNotFound(err) {
		t.Errorf("its manifests: %v", err)
	}
}

// collectedKV calls a function before the first read of a pack.
type collectedKV struct {
	clientv3.KV
	collect func()
}

func (c *collectedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if do := c.collect; do != nil && strings.HasPrefix(key, store.NewKeys(prefix).Packs()) {
		c.collect = nil
		do()
	}
	return c.KV.Get(ctx, key, opts...)
}

// TestManifestsOfCollected: the subresource manifests also answers NotFound when the revision is
// deleted during the read.
func TestManifestsOfCollected(t *testing.T) {
	etcd := storetest.Client(t)
	ctx := as(t.Context(), "abc")
	kv := &collectedKV{KV: etcd}
	b, other := newBenchOn(t, storetest.NewMemory(), kv), newBenchOn(t, storetest.NewMemory(), etcd)
	if err := creates(1, "ab")(other, ctx); err != nil {
		t.Fatal(err)
	}
	kv.collect = func() {
		if err := errors.Join(deletes("e-1", metav1.DeletePropagationBackground)(other, ctx), updates("e-1", unfinished)(other, ctx), collects(ctx, etcd)); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.manifests.Get(ctx, "e-1", &v1alpha1.RevisionManifestsOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("its manifests: %v", err)
	}
	if kv.collect != nil {
		t.Error("no pack was read")
	}
}
