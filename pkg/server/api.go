package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/registry/hco"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
	"github.com/penstock-project/penstock/pkg/registry/olm"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/requestbody"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/claim"
	"github.com/penstock-project/penstock/pkg/store/identity"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/run"
	chainstanding "github.com/penstock-project/penstock/pkg/store/standing"
)

// Store is the part of the store that is not behind our API.
type Store struct {
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

func newStore(db *database, present identity.Identity, unreadable *store.Unreadable) Store {
	digester := manifest.Digester{}
	if present.ID != "" {
		digester.SecretKey = present.SecretKey[:]
	}
	return Store{
		Packs:       pack.New(db.client, storagePrefix, digester, pack.MaxBytes(v1alpha1.MaxManifestBytes)),
		Heads:       chain.NewHeads(db.client, storagePrefix).Telling(unreadable),
		Inventories: chain.NewInventories(db.client, storagePrefix).Telling(unreadable),
		Standings:   chainstanding.New(db.client, storagePrefix),
		Claims:      claim.New(db.client, storagePrefix).Telling(unreadable),
		Runs:        run.New(db.client, storagePrefix).Telling(unreadable),
		Digester:    digester,
	}
}

// api is the served groups: their endpoints, and the filter in front of them.
type api struct {
	store      Store
	extra      *ExtraConfig
	authorizer authorizer.Authorizer
	admission  admission.Interface
	maxBody    int64
	// revisions are the endpoints, once they are installed. The filter, which
	// is built before them, looks for them when requests come.
	revisions *clusterextensionrevision.Storage
}

func newAPI(c *Config) *api {
	return &api{
		store:      newStore(c.Extra.database, c.Extra.decision.Identity, c.Extra.unreadable),
		extra:      &c.Extra,
		authorizer: c.Generic.Authorization.Authorizer,
		admission:  c.Generic.AdmissionControl,
		maxBody:    c.Generic.MaxRequestBodyBytes,
	}
}

// withBodies takes the manifests out of request bodies.
func (a *api) withBodies(next http.Handler) http.Handler {
	return clusterextensionrevision.WithBodies(next, clusterextensionrevision.FilterDeps{
		Digester:     a.store.Digester,
		Serializer:   encoding.Text(a.extra.codecs),
		Budget:       requestbody.NewBudget(requestbody.DefaultBudget),
		MaxBodyBytes: a.maxBody,
		Stored:       a.stored,
		Authorizer:   a.authorizer,
		Target:       a.extra.targetName(),
	})
}

func (a *api) stored(ctx context.Context, name string) (*hub.ClusterExtensionRevision, error) {
	if a.revisions == nil {
		return nil, errors.New("the server is not installed yet")
	}
	return a.revisions.Revision.Stored(ctx, name)
}

// install adds the groups to the server.
func (a *api) install(generic *genericapiserver.GenericAPIServer, options generic.RESTOptionsGetter) error {
	types, err := diffschema.NewBuiltin()
	if err != nil {
		return fmt.Errorf("reading the types of Kubernetes: %w", err)
	}
	reads, err := newHostReads(a.extra.host, a.extra.target, a.extra.targetReads)
	if err != nil {
		return err
	}
	checks, err := newApplyChecks(a.extra.host, a.extra.target, a.extra.targetReads)
	if err != nil {
		return err
	}
	live, err := a.newLive()
	if err != nil {
		return err
	}
	info, revisions, err := olm.NewAPIGroupInfo(a.extra.codecs, olm.Deps{
		Deps: clusterextensionrevision.Deps{
			Scheme:     a.extra.scheme,
			OptsGetter: options,
			Bodies:     a.extra.health.LimitedBodies(a.store.Packs),
			Heads:      a.store.Heads,
			Standings:  a.store.Standings,
			Entries:    a.extra.entries,
			Digester:   a.store.Digester,
			Authorizer: a.authorizer,
			Redactor:   a.extra.redactor,
			ApplyCheck: checks,
			CheckCEL:   probe.NewCELChecker(),
		},
		Schema:         types,
		Admission:      a.admission,
		Owners:         reads,
		StoredVersions: reads,
		Live:           live,
		Imports:        a.store.Heads,
		Unreadable:     a.extra.unreadable,
		Forget:         a.store.Heads,
		Inventories:    a.store.Inventories,
	})
	if err != nil {
		return err
	}
	a.revisions = revisions
	if err := generic.InstallAPIGroup(info); err != nil {
		return fmt.Errorf("installing %s: %w", v1alpha1.GroupName, err)
	}
	return a.installPlans(generic, options, types)
}

// installPlans adds the group of plans.
func (a *api) installPlans(generic *genericapiserver.GenericAPIServer, options generic.RESTOptionsGetter, types diffschema.Schema) error {
	differ, looking, err := a.newPlanReads(types)
	if err != nil {
		return err
	}
	info, _, err := hco.NewAPIGroupInfo(a.extra.codecs, hco.Deps{
		Deps: configurationplan.Deps{
			Scheme: a.extra.scheme, OptsGetter: options,
			Packs: a.store.Packs, Claims: a.store.Claims, Runs: a.store.Runs,
			Differ: differ,
		},
		Survey:     looking,
		Unreadable: a.extra.unreadable,
	})
	if err != nil {
		return err
	}
	if err := generic.InstallAPIGroup(info); err != nil {
		return fmt.Errorf("installing %s: %w", hcov1alpha1.GroupName, err)
	}
	return nil
}
