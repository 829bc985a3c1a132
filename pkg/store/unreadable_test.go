package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/claim"
	"github.com/penstock-project/penstock/pkg/store/run"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// withoutLeases is a KV that grants no leases.
type withoutLeases struct{ *storetest.Memory }

func (withoutLeases) Grant(context.Context, int64) (*clientv3.LeaseGrantResponse, error) {
	return nil, errors.New("no leases")
}

// TestUnreadableRecords: a damaged record is counted by its kind until it is deleted or written
// again.
func TestUnreadableRecords(t *testing.T) {
	ctx, kv, keys := t.Context(), storetest.NewMemory(), store.NewKeys("/p")
	unreadable := store.NewUnreadable(kv)
	heads, inventories := chain.NewHeads(kv, "/p").Noting(unreadable), chain.NewInventories(kv, "/p").Noting(unreadable)
	runs, claims := run.New(kv, "/p").Noting(unreadable), claim.New(withoutLeases{kv}, "/p").Noting(unreadable)
	for kind, tc := range map[string]struct {
		key  string
		read func() error
	}{
		"head":      {keys.Head("e"), func() error { _, _, err := heads.Get(ctx, "e"); return err }},
		"inventory": {keys.Inventory("e"), func() error { _, _, err := inventories.Load(ctx, "e"); return err }},
		"runs":      {keys.Runs("e"), func() error { _, err := runs.List(ctx, "e"); return err }},
		"claim":     {keys.Claim("profile/e"), func() error { _, err := claims.Holder(ctx, "profile/e"); return err }},
	} {
		for _, value := range []string{"garbage", "PKH\xff", "PKI\xff", "PKR\xff", "PKC\xff"} {
			if _, err := kv.Put(ctx, tc.key, value); err != nil {
				t.Fatal(err)
			}
			if err := tc.read(); err == nil {
				t.Errorf("%s: %q was read", kind, value)
			}
			listed := unreadable.List(ctx)
			if len(listed) != 1 || listed[0].Key != tc.key || keys.KindOf(listed[0].Key) != kind {
				t.Errorf("%s: %q is listed as %v", kind, value, listed)
			}
		}
		if _, err := kv.Delete(ctx, tc.key); err != nil {
			t.Fatal(err)
		}
		if err := tc.read(); err != nil || len(unreadable.List(ctx)) != 0 {
			t.Errorf("%s: it is gone, and %v (%v)", kind, unreadable.List(ctx), err)
		}
	}
	for key, want := range map[string]string{
		"/p/olm.operatorframework.io/clusterextensionrevisions/e-1": "clusterextensionrevisions",
		"/p/hco.kubevirt.io/configurationplans/p":                   "configurationplans",
		keys.Identity():        "other",
		keys.ChainVersion("e"): "other",
		keys.Pack("sha256:"):   "other",
	} {
		if got := keys.KindOf(key); got != want {
			t.Errorf("%s is of kind %s, want %s", key, got, want)
		}
	}
	// An error that is not about the record does not count.
	if unreadable.Told("k", nil, fmt.Errorf("reading: %w", context.Canceled)) == nil || len(unreadable.List(ctx)) != 0 {
		t.Error("a read that did not come to be is noted")
	}
}
