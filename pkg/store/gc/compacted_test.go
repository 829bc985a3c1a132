package gc

import (
	"context"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// compactingKV reads pages of one record. Before each page it writes a record and compacts all
// history. A store at its quota is compacted every 15 s, and reading a page may take as long.
type compactingKV struct {
	clientv3.KV
	t           *testing.T
	compactions int
}

func (c *compactingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	op := clientv3.OpGet(key, opts...)
	if len(op.RangeBytes()) == 0 {
		return c.KV.Get(ctx, key, opts...)
	}
	done, err := c.KV.Put(ctx, "/other", "")
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.KV.Compact(ctx, done.Header.Revision); err != nil {
		c.t.Fatal(err)
	}
	c.compactions++
	return c.KV.Get(ctx, key, append(opts, clientv3.WithLimit(min(1, op.Limit())))...)
}

// TestCompacted: a collection ends and deletes unreferenced packs, even if etcd compacts the
// revision of each page while it is read.
func TestCompacted(t *testing.T) {
	etcd := storetest.Client(t)
	s, ctx := on(t, etcd), t.Context()
	for i := range 12 {
		s.must(s.create(ctx, fmt.Sprint("a-", i), fmt.Sprint(i)))
	}
	for i := range 6 {
		s.must(s.delete(ctx, fmt.Sprint("a-", 2*i)))
	}
	kv := &compactingKV{KV: etcd, t: t}
	collector := s.collector(kv)
	s.must(collector.Begin(ctx))
	// There are six revisions, and five of them have the same base. The deletions depend on this.
	if result, err := collector.Collect(ctx); err != nil || result.Packs < 5 {
		t.Errorf("collecting while etcd forgets: %+v, want 5 packs deleted or more: %v", result, err)
	}
	if kv.compactions < 40 {
		t.Errorf("etcd forgot %d times, want 40 or more", kv.compactions)
	}
	s.holds("behind it", false)
	s.must(s.deleteAll(ctx))
	if result, err := collector.Collect(ctx); err != nil || result.Present != 0 {
		t.Errorf("collecting all that is left: %+v: %v", result, err)
	}
	s.holds("at the end", true)
}
