package references

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// boundedKV refuses answers that are larger than a client of etcd accepts.
type boundedKV struct {
	clientv3.KV
	reads int
}

func (b *boundedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	b.reads++
	found, err := b.KV.Get(ctx, key, opts...)
	if err == nil {
		bytes := 0
		for _, kv := range found.Kvs {
			bytes += len(kv.Key) + len(kv.Value)
		}
		if bytes > 64<<20 {
			return nil, fmt.Errorf("received message larger than max: %d bytes", bytes)
		}
	}
	return found, err
}

// TestLargeRecords: each read fits into one message, even after many small records, which take few
// requests.
func TestLargeRecords(t *testing.T) {
	kv, ctx := &boundedKV{KV: storetest.NewMemory()}, t.Context()
	source := NewSource(kv, "/p", nil)
	want := 0
	put := func(name string, n, bytes int) {
		value := strings.Repeat("x", bytes)
		for i := range n {
			if _, err := kv.Put(ctx, source.Keys().Packs()+fmt.Sprintf("%s-%03d/pack", name, i), value); err != nil {
				t.Fatal(err)
			}
			want++
		}
	}
	read := func() {
		t.Helper()
		revision, err := source.Revision(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, before := 0, ""
		err = source.EachPackRecord(ctx, revision, func(kv *mvccpb.KeyValue) error {
			if got++; string(kv.Key) <= before {
				t.Errorf("%s comes behind %s", kv.Key, before)
			}
			before = string(kv.Key)
			return nil
		})
		if err != nil || got != want {
			t.Errorf("reading all records: got %d, want %d: %v", got, want, err)
		}
	}
	put("a", 300, 100)
	kv.reads = 0
	read()
	if most := 300/packPage + 3; kv.reads > most {
		t.Errorf("300 small records took %d reads, want %d at most", kv.reads, most)
	}
	put("b", 70, 1500<<10)
	read()
}
