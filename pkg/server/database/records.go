package database

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/records"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	chainversion "github.com/penstock-project/penstock/pkg/store/chainversion"
	"github.com/penstock-project/penstock/pkg/store/claim"
	"github.com/penstock-project/penstock/pkg/store/fsck"
	"github.com/penstock-project/penstock/pkg/store/gc"
	"github.com/penstock-project/penstock/pkg/store/identity"
	"github.com/penstock-project/penstock/pkg/store/outbox"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/references"
	"github.com/penstock-project/penstock/pkg/store/run"
)

// Records is the part of the store that is not behind our API.
type Records struct {
	Packs       *pack.Store
	Heads       *chain.Heads
	Inventories *chain.Inventories
	// ChainVersions detect concurrent changes of chains.
	ChainVersions *chainversion.ChainVersions
	// Claims holds the holders of profiles, and Runs the executions of plans.
	Claims *claim.Claims
	Runs   *run.Runs
	// Outbox holds the notifications for receivers.
	Outbox *outbox.Outbox
	// Digester computes the digests of this store. It keys digests of Secrets with the store's key.
	Digester manifest.Digester
	// Upkeep collects and checks the store.
	Upkeep Upkeep
}

// Upkeep collects unreferenced records of a store, and checks the store.
type Upkeep struct {
	// Raised is true if an earlier Penstock, which does not know the collector, may still serve the
	// store.
	Raised bool

	kv       clientv3.KV
	source   *references.Source
	packs    *pack.Store
	digester manifest.Digester
}

// Collector returns a new collector, which has not started yet.
func (u Upkeep) Collector() *gc.Collector { return gc.New(u.kv, u.source, u.packs) }

// Check checks the store. pace may wait after some bytes were read; nil does not wait.
func (u Upkeep) Check(ctx context.Context, pace func(ctx context.Context, bytes int) error) (fsck.Report, error) {
	return fsck.Check(ctx, fsck.Options{Source: u.source, KV: u.kv, Prefix: Prefix, Digester: u.digester, Pace: pace})
}

// Records returns the records of this database that are not objects of the API, for a store with
// this identity. unreadable collects the records that cannot be read.
func (d *Database) Records(present identity.Identity, unreadable *store.Unreadable) Records {
	digester := manifest.Digester{}
	if present.ID != "" {
		digester.SecretKey = present.SecretKey[:]
	}
	packs := pack.New(d.Client, Prefix, digester, pack.MaxBytes(v1alpha1.MaxManifestBytes))
	return Records{
		Packs:         packs,
		Heads:         chain.NewHeads(d.Client, Prefix).Noting(unreadable),
		Inventories:   chain.NewInventories(d.Client, Prefix).Noting(unreadable),
		ChainVersions: chainversion.New(d.Client, Prefix),
		Claims:        claim.New(d.Client, Prefix).Noting(unreadable),
		Runs:          run.New(d.Client, Prefix).Noting(unreadable),
		Outbox:        outbox.New(d.Client, Prefix).Noting(unreadable),
		Digester:      digester,
		Upkeep: Upkeep{
			kv: d.Client, packs: packs, digester: digester, source: references.NewSource(d.Client, Prefix, records.Decoders()),
		},
	}
}
