// Package olm assembles the endpoints of the API group olm.operatorframework.io for the API server.
package olm

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/lifecycle"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrollout"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionhistory"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionimport"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionmanifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionobjects"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionproposal"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionrollback"
	"github.com/penstock-project/penstock/pkg/registry/olm/sharing"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
	"github.com/penstock-project/penstock/pkg/store"
)

// Heads reads and writes the heads of chains. *chain.Heads implements it.
type Heads interface {
	clusterextensionrevision.Heads
	revisionhistory.Forgetting
	revisionimport.Heads
}

// Deps are the dependencies of NewAPIGroupInfo. A field must not be nil unless its comment allows
// it.
type Deps struct {
	clusterextensionrevision.Deps
	// Heads stores the numbers, also of imports, until an extension is forgotten.
	Heads Heads
	// Schema returns the types of fields for comparisons. With nil, only the types that revisions
	// define are known.
	Schema diffschema.Schema
	// Admission is the server's admission; a rollback runs it for the created revision.
	Admission admission.Interface
	// Owners reads the owner that a rollback holds.
	Owners clusterextensionrevision.Owners
	// StoredVersions reads the stored versions that a rollback must keep.
	StoredVersions revisionrollback.StoredVersions
	// Reserve protects the manifests of an import, see revisionimport.Deps.
	Reserve func(ctx context.Context) (reserved context.Context, release func(), err error)
	// Live compares revisions with the cluster.
	Live revisiondiff.Live
	// Objects reads the state of a revision's objects.
	Objects revisionobjects.Live
	// ClusterVersion returns the version of the cluster, nil if it is unknown.
	ClusterVersion func(ctx context.Context) *clusterversion.Kubernetes
	// Statements reads the catalogs' statements about installed packages; nil means none.
	Statements upgradereadiness.Statements
	// Render renders the manifests of the following packages; nil disables upgrade plans.
	Render upgradereadiness.Render
	// Readiness returns further sources for the upgrade readiness of the cluster.
	Readiness upgradereadiness.Sources
	// Unreadable collects unreadable records; nil collects none.
	Unreadable *store.Unreadable
}

// NewAPIGroupInfo returns the endpoints of the group, and the storage of revisions. The filter
// WithBodies needs its method Stored. OptsGetter returns the storage options for etcd;
// NewAPIGroupInfo sets the codec and the stored version.
func NewAPIGroupInfo(codecs serializer.CodecFactory, deps Deps) (*genericapiserver.APIGroupInfo, *clusterextensionrevision.Storage, error) {
	stored := encoding.Stored{
		RESTOptionsGetter: deps.OptsGetter, Codecs: codecs, Version: v1alpha1.SchemeGroupVersion,
		Placeholder: clusterextensionrevision.Unreadable, Unreadable: deps.Unreadable, Around: sharing.Codec,
	}
	deps.OptsGetter, deps.Deps.Heads = stored, deps.Heads
	storage, err := clusterextensionrevision.NewStorage(deps.Deps)
	if err != nil {
		return nil, nil, fmt.Errorf("installing %s: %w", v1alpha1.GroupName, err)
	}
	comparer := revisiondiff.New(revisiondiff.Deps{
		Revisions: storage.Revision, Authorizer: deps.Authorizer,
		Schema: deps.Schema, Redactor: deps.Redactor, Live: deps.Live,
	})
	table, err := lifecycle.New()
	if err != nil {
		return nil, nil, fmt.Errorf("installing %s: %w", v1alpha1.GroupName, err)
	}
	// The parameter codec uses Penstock's scheme: the codec of meta does not know the options of
	// the subresources.
	info := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, deps.Scheme, runtime.NewParameterCodec(deps.Scheme), codecs)
	info.NegotiatedSerializer = encoding.Text(codecs)
	rollouts, err := clusterextensionrollout.NewStorage(clusterextensionrollout.Deps{
		Scheme: deps.Scheme, Authorizer: deps.Authorizer, Clock: clock.RealClock{},
		OptsGetter: encoding.Stored{
			RESTOptionsGetter: stored.RESTOptionsGetter, Codecs: codecs, Version: v1alpha1.SchemeGroupVersion,
			Placeholder: clusterextensionrollout.Unreadable, Unreadable: deps.Unreadable,
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("installing %s: %w", v1alpha1.GroupName, err)
	}
	histories := revisionhistory.NewREST(storage.Revision, deps.Heads, deps.Inventories, deps.ChainVersions)
	ready := upgradereadiness.NewREST(upgradereadiness.Deps{
		Revisions: storage.Revision, Authorizer: deps.Authorizer, Table: table, Current: deps.ClusterVersion,
		Statements: deps.Statements, Render: deps.Render, Sources: deps.Readiness,
	})
	served := map[string]rest.Storage{
		"clusterextensionrevisions":           storage.Revision,
		"clusterextensionrevisions/status":    storage.Status,
		"clusterextensionrevisions/manifests": storage.Manifests,
		"clusterextensionrevisions/diff":      revisiondiff.NewSubresourceREST(comparer),
		"clusterextensionrevisions/objects":   revisionobjects.NewSubresourceREST(storage.Revision, deps.Objects),
		"clusterextensionrevisions/history":   revisionhistory.NewSubresourceREST(storage.Revision, deps.Heads, deps.Inventories),
		"clusterextensionrevisions/rollback": revisionrollback.NewREST(revisionrollback.Deps{
			Revisions: storage.Revision, Heads: deps.Heads, Scheme: deps.Scheme, Admission: deps.Admission, Authorizer: deps.Authorizer, Differ: comparer,
			Owners: deps.Owners, StoredVersions: deps.StoredVersions,
		}),
		"clusterextensionrevisions/" + clusterextensionrevision.ProposalSubresource: revisionproposal.NewREST(revisionproposal.Deps{
			Revisions: storage.Revision, Scheme: deps.Scheme, Admission: deps.Admission, Authorizer: deps.Authorizer,
			Differ: comparer, Table: revisiondiff.NewREST(comparer),
		}),
		"revisionhistories/import": revisionimport.NewREST(revisionimport.Deps{
			Scheme: deps.Scheme, Revisions: storage.Revision, Heads: deps.Heads, Histories: histories,
			Reserve:    deps.Reserve,
			Importer:   clusterextensionrevision.NewImporter(storage.Revision, deps.Scheme, deps.Admission),
			Authorizer: deps.Authorizer, Owners: deps.Owners,
		}),
		// These resources are virtual: users read them by name. They can be neither listed nor
		// watched, so garbage collection, quota and backups ignore them.
		"revisiondiffs":      revisiondiff.NewREST(comparer),
		"revisionhistories":  histories,
		"revisionmanifests":  revisionmanifest.NewREST(storage.Revision, deps.Authorizer),
		"upgradereadinesses": ready,
	}
	maps.Copy(served, rollouts)
	if deps.Render != nil {
		served["upgradereadinesses/plan"] = upgradereadiness.NewPlanREST(ready)
	}
	info.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = served
	return &info, storage, nil
}
