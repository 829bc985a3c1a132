package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/admission/plugin/privilege"
	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/readiness"
	"github.com/penstock-project/penstock/pkg/registry/catalog"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/registry/hco"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofiledefinition/evaluator"
	"github.com/penstock-project/penstock/pkg/registry/olm"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/requestbody"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/server/clusterreads"
	"github.com/penstock-project/penstock/pkg/server/memory"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// api holds the served groups: their endpoints, and the filter in front of them.
type api struct {
	*Server
	// revisions is set by install. The filter and the admission plugins are created before it, so
	// they read this field during requests.
	revisions *clusterextensionrevision.Storage
	plans     rest.Lister
}

// withBodies takes the manifests out of request bodies.
func (a *api) withBodies(next http.Handler) http.Handler {
	return clusterextensionrevision.WithBodies(next, clusterextensionrevision.FilterDeps{
		Digester:     a.records.Digester,
		Serializer:   encoding.Text(a.codecs),
		Budget:       requestbody.NewBudget(memory.ForBodies(requestbody.DefaultBudget)),
		MaxBodyBytes: a.config.MaxRequestBodyBytes,
		Stored:       a.stored,
		Authorizer:   a.config.Authorization.Authorizer,
		Target:       a.target.Name(),
	})
}

func (a *api) stored(ctx context.Context, name string) (*hub.ClusterExtensionRevision, error) {
	if a.revisions == nil {
		return nil, errNotInstalled
	}
	return a.revisions.Revision.Stored(ctx, name)
}

func (a *api) install(generic *genericapiserver.GenericAPIServer, options generic.RESTOptionsGetter) error {
	types, err := diffschema.NewBuiltin()
	if err != nil {
		return fmt.Errorf("reading the types of Kubernetes: %w", err)
	}
	reads, err := clusterreads.New(clusterreads.Options{
		Host: a.host, Target: a.target, TargetClients: a.targetClients, Authorizer: a.config.Authorization.Authorizer, Accounts: a.accounts,
		Redactor: a.redactor, Chain: a.Revisions, Inventories: a.records.Inventories, Packs: a.records.Packs,
		Profiles: a.options.Profiles, Types: types,
	})
	if err != nil {
		return err
	}
	sources, err := a.readiness(reads)
	if err != nil {
		return err
	}
	info, revisions, err := olm.NewAPIGroupInfo(a.codecs, olm.Deps{
		Deps: clusterextensionrevision.Deps{
			Scheme:        a.scheme,
			OptsGetter:    options,
			Bodies:        a.health.LimitedBodies(a.records.Packs),
			ChainVersions: a.records.ChainVersions, Inventories: a.records.Inventories,
			Digester:    a.records.Digester,
			Authorizer:  a.config.Authorization.Authorizer,
			Redactor:    a.redactor,
			ApplyCheck:  reads.ApplyCheck,
			CheckCEL:    probe.NewCELChecker(),
			NameWarning: a.crdConflict.Warning,
			Shares:      a.shares,
		},
		Heads:          a.records.Heads,
		Schema:         types,
		Admission:      a.config.AdmissionControl,
		Owners:         reads.Rollbacks,
		StoredVersions: reads.Rollbacks,
		Live:           reads.Live,
		Objects:        reads.Objects,
		Reserve: func(ctx context.Context) (context.Context, func(), error) {
			return a.records.Packs.Reserve(ctx, a.database.Client)
		},
		Unreadable: a.unreadable,
		ClusterVersion: func(ctx context.Context) *clusterversion.Kubernetes {
			found, err := reads.Version(ctx, nil, "")
			if err != nil {
				return nil
			}
			return &found
		},
		Statements: a.statements, Readiness: sources, Render: a.options.RenderPackage,
	})
	if err != nil {
		return err
	}
	a.revisions = revisions
	if err := generic.InstallAPIGroup(info); err != nil {
		return fmt.Errorf("installing %s: %w", v1alpha1.GroupName, err)
	}
	if err := a.installPlans(generic, options, reads); err != nil {
		return err
	}
	return a.installCatalogs(generic, reads)
}

func (a *api) installCatalogs(generic *genericapiserver.GenericAPIServer, reads *clusterreads.Reads) error {
	catalogs := a.options.Catalogs
	if catalogs == nil {
		catalogs = inventory.New(clock.RealClock{})
		catalogs.MarkComplete()
	}
	host, err := dynamic.NewForConfig(a.host.ConfigFor("extensions"))
	if err != nil {
		return fmt.Errorf("connecting to the host for ClusterExtensions: %w", err)
	}
	info := catalog.NewAPIGroupInfo(a.codecs, catalog.Deps{
		Scheme: a.scheme, Catalogs: catalogs,
		Asking:    catalog.AskingFor(extensionsOf(host), a.revisions.Revision.All, reads.Version, a.config.Authorization.Authorizer),
		Installed: catalog.InstalledBy(a.revisions.Revision.All, a.config.Authorization.Authorizer),
	})
	if err := generic.InstallAPIGroup(info); err != nil {
		return fmt.Errorf("installing %s: %w", catalogv1alpha1.GroupName, err)
	}
	return nil
}

func (a *api) statements(pkg, bundle, version string) (readiness.Statement, error) {
	if a.options.Catalogs == nil {
		return readiness.Statement{Package: pkg}, nil
	}
	return readiness.StatedBy(a.options.Catalogs.Snapshot().ForResolver(pkg), pkg, bundle, version)
}

// extensionsOf lists the ClusterExtensions of a cluster. The list is empty if the cluster lacks the
// kind.
func extensionsOf(host dynamic.Interface) catalog.Extensions {
	return func(ctx context.Context) ([]extension.Extension, error) {
		listed, err := host.Resource(extension.Resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all := make([]extension.Extension, 0, len(listed.Items))
		for i := range listed.Items {
			one, err := extension.From(&listed.Items[i])
			if err != nil {
				return nil, err
			}
			all = append(all, *one)
		}
		return all, nil
	}
}

func (a *api) installPlans(generic *genericapiserver.GenericAPIServer, options generic.RESTOptionsGetter, reads *clusterreads.Reads) error {
	differ, approvers, surveyed, err := reads.Plans()
	if err != nil {
		return err
	}
	schemas, err := reads.Schemas()
	if err != nil {
		return err
	}
	info, plans, err := hco.NewAPIGroupInfo(a.codecs, hco.Deps{
		Deps: configurationplan.Deps{
			Scheme: a.scheme, OptsGetter: options,
			Packs: a.records.Packs, Claims: a.records.Claims, Runs: a.records.Runs,
			Differ: differ, Approvers: approvers,
		},
		Survey:     *surveyed,
		Schemas:    schemas,
		Evaluator:  &evaluator.Evaluator{Authorizer: a.config.Authorization.Authorizer, Differ: differ, ClientOf: surveyed.ClientOf},
		Unreadable: a.unreadable,
	})
	if err != nil {
		return err
	}
	a.plans = plans.Plan
	if err := generic.InstallAPIGroup(info); err != nil {
		return fmt.Errorf("installing %s: %w", hcov1alpha1.GroupName, err)
	}
	return nil
}

var _ privilege.Chains = &api{}

// errNotInstalled is the error of requests that arrive before the endpoints exist.
var errNotInstalled = errors.New("the server is not installed yet")

// Revisions implements privilege.Chains.
func (a *api) Revisions(ctx context.Context, name string) ([]hub.ClusterExtensionRevision, error) {
	if a.revisions == nil {
		return nil, errNotInstalled
	}
	return a.revisions.Revision.Chain(ctx, name)
}

// Contents implements privilege.Chains.
func (a *api) Contents(ctx context.Context, revision *hub.ClusterExtensionRevision) ([]manifest.Object, error) {
	if a.revisions == nil {
		return nil, errNotInstalled
	}
	return a.revisions.Revision.Contents(ctx, revision)
}

// Inventory implements privilege.Chains.
func (a *api) Inventory(ctx context.Context, name string) (chain.Inventory, error) {
	inventory, _, err := a.records.Inventories.Load(ctx, name)
	return inventory, err
}
