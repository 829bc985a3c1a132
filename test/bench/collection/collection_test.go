// Package collection measures the effect of collecting old manifests on concurrent reads and
// writes.
package collection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/records"
	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/fsck"
	"github.com/penstock-project/penstock/pkg/store/gc"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/references"
)

const (
	prefix = "/penstock"
	// 1,000 extensions of 5 revisions, so 5,000 packs of 13 objects.
	extensions, revisions, objects = 1000, 5, 13
)

// TestCollection measures on an embedded etcd that syncs to disk. It measures the time to examine
// 5,000 revisions without garbage, to collect 4,000 and then all of them, to check the store, and
// to defragment it. It also measures the longest wait of a concurrent reader and writer.
func TestCollection(t *testing.T) {
	if os.Getenv("BENCH") != "store" {
		t.Skip("run by make bench SUITE=store")
	}
	dir, err := os.MkdirTemp("", "penstock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := etcd.Start(t.Context(), etcd.Config{DataDir: dir, QuotaBytes: 4 << 30, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	b := &bench{t: t, client: client, source: references.NewSource(client, prefix, records.Decoders()), packs: pack.New(client, prefix, manifest.Digester{})}
	b.fill()

	b.measure("nothing to collect", b.collect)
	b.remove(func(revision int) bool { return revision < revisions })
	b.measure("4,000 of 5,000 collected", b.collect)
	b.measure("checked", b.check)
	b.remove(func(int) bool { return true })
	b.measure("the last 1,000 collected", b.collect)
	b.measure("compacted", func(ctx context.Context) error {
		at, err := b.source.Revision(ctx)
		if err == nil {
			_, err = client.Compact(ctx, at, clientv3.WithCompactPhysical())
		}
		return err
	})
	b.fill()
	b.size("filled again")
	b.remove(func(revision int) bool { return revision < revisions })
	b.measure("4,000 of 5,000 collected", b.collect)
	b.measure("compacted", func(ctx context.Context) error {
		at, err := b.source.Revision(ctx)
		if err == nil {
			_, err = client.Compact(ctx, at, clientv3.WithCompactPhysical())
		}
		return err
	})
	b.size("before")
	b.measure("defragmented", func(ctx context.Context) error {
		_, err := client.Defragment(ctx, client.Endpoints()[0])
		return err
	})
	b.size("after")
}

type bench struct {
	t      *testing.T
	client *clientv3.Client
	source *references.Source
	packs  *pack.Store
	fills  int
}

func record(extension, revision int) string {
	return store.NewKeys(prefix).All() + fmt.Sprintf("olm.operatorframework.io/clusterextensionrevisions/e%d-%d", extension, revision)
}

// fill stores all revisions. Each changes one object of the previous revision.
func (b *bench) fill() {
	b.t.Helper()
	b.fills++
	random := rand.New(rand.NewPCG(1, 1))
	text := func(n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = byte('0' + random.IntN(64))
		}
		return string(out)
	}
	for e := range extensions {
		var chain []string
		common := text(400)
		for r := 1; r <= revisions; r++ {
			var list []manifest.Object
			body := `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"%s"},"spec":{"phases":[{"name":"one","objects":[`
			for o := range objects {
				changed := ""
				if o == 0 {
					changed = fmt.Sprint(r, b.fills, text(30))
				}
				object, err := manifest.Digester{}.FromJSON(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d","namespace":"e%d"},"data":{"k":%q}}`, o, e, common+changed))
				if err != nil {
					b.t.Fatal(err)
				}
				list = append(list, object)
				if o > 0 {
					body += ","
				}
				body += fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":"c%d","namespace":"e%d","digest":%q}`, o, e, object.Digest)
			}
			root, err := b.packs.PutInChain(b.t.Context(), list, chain)
			if err != nil {
				b.t.Fatal(err)
			}
			chain = append([]string{root}, chain...)
			name := fmt.Sprintf("e%d-%d", e, r)
			if _, err := b.client.Put(b.t.Context(), record(e, r), fmt.Sprintf(body, name)+"]}]}}"); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func (b *bench) remove(which func(revision int) bool) {
	b.t.Helper()
	for e := range extensions {
		for r := 1; r <= revisions; r++ {
			if which(r) {
				if _, err := b.client.Delete(b.t.Context(), record(e, r)); err != nil {
					b.t.Fatal(err)
				}
			}
		}
	}
}

func (b *bench) collect(ctx context.Context) error {
	collector := gc.New(b.client, b.source, b.packs)
	if err := collector.Begin(ctx); err != nil {
		return err
	}
	result, err := collector.Collect(ctx)
	b.t.Logf("  %+v", result)
	return err
}

func (b *bench) check(ctx context.Context) error {
	report, err := fsck.Check(ctx, fsck.Options{Source: b.source, KV: b.client, Prefix: prefix})
	for _, problem := range report.Problems {
		if problem.Kind != fsck.LeftOver {
			b.t.Errorf("%+v", problem)
		}
	}
	b.t.Logf("  %d packs, %d deltas, %d bytes", report.Packs, report.Deltas, report.PackBytes)
	return err
}

// measure runs do while one client reads and another one writes.
func (b *bench) measure(what string, do func(context.Context) error) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	longest := func(request func() error) <-chan time.Duration {
		out := make(chan time.Duration, 1)
		go func() {
			var most time.Duration
			for ctx.Err() == nil {
				begin := time.Now()
				if err := request(); err != nil {
					b.t.Errorf("%s: %v", what, err)
				}
				most = max(most, time.Since(begin))
			}
			out <- most
		}()
		return out
	}
	reads := longest(func() error { _, err := b.client.Get(b.t.Context(), record(1, revisions)); return err })
	writes := longest(func() error { _, err := b.client.Put(b.t.Context(), "/other", "x"); return err })
	begin := time.Now()
	if err := do(b.t.Context()); err != nil {
		b.t.Errorf("%s: %v", what, err)
	}
	took := time.Since(begin)
	cancel()
	b.t.Logf("%s: %s; a reader waited at most %s, a writer %s", what, took.Round(time.Millisecond), (<-reads).Round(time.Millisecond/10), (<-writes).Round(time.Millisecond/10))
}

func (b *bench) size(what string) {
	b.t.Helper()
	status, err := b.client.Status(b.t.Context(), b.client.Endpoints()[0])
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("%s: %d bytes in the file, %d in use", what, status.DbSize, status.DbSizeInUse)
}
