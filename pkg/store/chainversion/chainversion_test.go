package chainversion

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// TestWrites: a record is written only if its chain is unchanged since the check.
func TestWrites(t *testing.T) {
	etcd := storetest.Client(t)
	stock := &kubernetes.Client{Client: etcd}
	client, chainVersions := NewClient(stock, etcd, "/p"), New(etcd, "/p")
	ctx := t.Context()
	at := func() int64 {
		t.Helper()
		revision, err := chainVersions.Get(ctx, "e")
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	judgedBy := func(revision int64) context.Context {
		ctx := With(ctx)
		From(ctx).Made("e", revision)
		return ctx
	}
	put := func(ctx context.Context, key string, expected int64) (kubernetes.PutResponse, error) {
		return client.OptimisticPut(ctx, key, []byte("x"), expected, kubernetes.PutOptions{GetOnFailure: expected != 0})
	}
	changed := func(err error) bool { var c *ChangedError; return errors.As(err, &c) }

	before := at()
	first, err := put(judgedBy(before), "/p/e-1", 0)
	if err != nil || !first.Succeeded || at() != first.Revision {
		t.Fatalf("a create: %+v, %v; the chain stands at %d", first, err, at())
	}
	if _, err := put(judgedBy(before), "/p/e-2", 0); !changed(err) {
		t.Errorf("a create judged before another one: %v", err)
	}
	if got, err := put(judgedBy(at()), "/p/e-1", 0); err != nil || got.Succeeded {
		t.Errorf("a create of what is there: %+v, %v", got, err)
	}

	// The storage must start an update again, and it succeeds only after another check.
	late := judgedBy(before)
	got, err := put(late, "/p/e-1", first.Revision)
	if err != nil || got.Succeeded || got.KV == nil || got.KV.ModRevision != first.Revision {
		t.Errorf("an update judged before another write: %+v, %v", got, err)
	}
	if _, err := put(late, "/p/e-1", first.Revision); !changed(err) {
		t.Errorf("the same again: %v", err)
	}
	From(late).Made("e", at())
	if got, err := put(late, "/p/e-1", first.Revision); err != nil || !got.Succeeded {
		t.Errorf("judged again: %+v, %v", got, err)
	}
	if _, err := put(late, "/p/e-1", at()); !changed(err) {
		t.Errorf("one precondition, two writes: %v", err)
	}

	// An outdated cached record is no change of the chain.
	behind := judgedBy(at())
	if got, err := client.OptimisticDelete(behind, "/p/e-1", first.Revision, kubernetes.DeleteOptions{GetOnFailure: true}); err != nil || got.Succeeded {
		t.Errorf("a delete of an older record: %+v, %v", got, err)
	} else if got, err := client.OptimisticDelete(behind, "/p/e-1", got.KV.ModRevision, kubernetes.DeleteOptions{}); err != nil || !got.Succeeded {
		t.Errorf("a delete of the record as it is: %+v, %v", got, err)
	}

	// Unjudged writes fail. Writes without need of a precondition change the chain version. Writes
	// of status do not change it.
	if _, err := put(With(ctx), "/p/e-3", 0); !changed(err) {
		t.Errorf("without a precondition: %v", err)
	}
	before = at()
	if got, err := put(Counting(ctx, "e"), "/p/e-3", 0); err != nil || !got.Succeeded || at() == before {
		t.Errorf("without comparison: %+v, %v", got, err)
	}
	before = at()
	if got, err := put(ctx, "/p/e-4", 0); err != nil || !got.Succeeded || at() != before {
		t.Errorf("a write that is not counted: %+v, %v", got, err)
	}
}
