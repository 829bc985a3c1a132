package gc

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// compactingKV writes something and forgets all history before chosen reads at a revision,
// as a store does that is as large as its quota.
type compactingKV struct {
	clientv3.KV
	t     *testing.T
	reads int
	at    map[int]bool
}

func (c *compactingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if clientv3.OpGet(key, opts...).Rev() == 0 {
		return c.KV.Get(ctx, key, opts...)
	}
	if c.reads++; c.at[c.reads] {
		done, err := c.KV.Put(ctx, "/other", "")
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := c.KV.Compact(ctx, done.Header.Revision); err != nil {
			c.t.Fatal(err)
		}
	}
	return c.KV.Get(ctx, key, opts...)
}

// TestCompacted: a collection goes on when etcd forgets the revision at which it reads.
func TestCompacted(t *testing.T) {
	etcd := storetest.Client(t)
	s, ctx := on(t, etcd), t.Context()
	for _, name := range []string{"a-1", "b-1"} {
		if err := s.create(ctx, name, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.delete(ctx, "a-1"); err != nil {
		t.Fatal(err)
	}
	kv := &compactingKV{KV: etcd, t: t, at: map[int]bool{1: true, 3: true, 6: true, 12: true}}
	collector := s.collector(kv)
	if err := collector.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	result, err := collector.Collect(ctx)
	if err != nil || result.Packs != 1 {
		t.Errorf("collecting while etcd forgets: got %d packs deleted, want 1: %v", result.Packs, err)
	}
	s.holds("behind it", true)
}
