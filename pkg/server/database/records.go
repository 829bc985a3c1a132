package database

import (
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/claim"
	"github.com/penstock-project/penstock/pkg/store/identity"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/run"
	chainstanding "github.com/penstock-project/penstock/pkg/store/standing"
)

// Records is the part of the store that is not behind our API.
type Records struct {
	Packs       *pack.Store
	Heads       *chain.Heads
	Inventories *chain.Inventories
	// Standings is by what changes of revisions are judged.
	Standings *chainstanding.Standings
	// Claims is who holds which profile, and Runs is what plans did.
	Claims *claim.Claims
	Runs   *run.Runs
	// Digester makes the digests of this store: those of Secrets with its key.
	Digester manifest.Digester
}

// Records are what this database keeps beside the API, of a store with this identity. What
// cannot be read is noted in unreadable.
func (d *Database) Records(present identity.Identity, unreadable *store.Unreadable) Records {
	digester := manifest.Digester{}
	if present.ID != "" {
		digester.SecretKey = present.SecretKey[:]
	}
	return Records{
		Packs:       pack.New(d.Client, Prefix, digester, pack.MaxBytes(v1alpha1.MaxManifestBytes)),
		Heads:       chain.NewHeads(d.Client, Prefix).Noting(unreadable),
		Inventories: chain.NewInventories(d.Client, Prefix).Noting(unreadable),
		Standings:   chainstanding.New(d.Client, Prefix),
		Claims:      claim.New(d.Client, Prefix).Noting(unreadable),
		Runs:        run.New(d.Client, Prefix).Noting(unreadable),
		Digester:    digester,
	}
}
