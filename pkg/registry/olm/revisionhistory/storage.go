package revisionhistory

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// Revisions reads revisions. *clusterextensionrevision.REST implements it.
type Revisions interface {
	// Stored returns a stored revision.
	Stored(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error)
	// Chain returns the revisions of a chain, unsorted.
	Chain(ctx context.Context, chain string) ([]olm.ClusterExtensionRevision, error)
	// All returns the readable revisions of all chains, by chain.
	All(ctx context.Context) (map[string][]olm.ClusterExtensionRevision, error)
}

// Heads reads the heads of chains. *chain.Heads implements it.
type Heads interface {
	// Get returns the head of a chain, and whether there is one.
	Get(ctx context.Context, name string) (chain.Head, bool, error)
	// Each calls a function with the head and the inventory of every chain that has a head.
	Each(ctx context.Context, do func(chain.Head, chain.Inventory) error) error
}

// Inventories reads the inventories of chains. *chain.Inventories implements it.
type Inventories interface {
	// Load returns the inventory of a chain and etcd's revision of its last write.
	Load(ctx context.Context, name string) (chain.Inventory, int64, error)
}

// endpoint is the shared part of the resource and the subresource.
type endpoint struct {
	revisions   Revisions
	heads       Heads
	inventories Inventories
	table
}

// New returns an empty history.
func (*endpoint) New() runtime.Object { return &v1alpha1.RevisionHistory{} }

// Destroy does nothing.
func (*endpoint) Destroy() {}

// read returns the history of an extension. An extension that never had a revision is not found.
func (e *endpoint) read(ctx context.Context, name string) (runtime.Object, error) {
	// The revisions are read first: if a revision is deleted in between, the head has it.
	revisions, err := e.revisions.Chain(ctx, name)
	if err != nil {
		return nil, err
	}
	head, found, err := e.heads.Get(ctx, name)
	switch {
	case err != nil:
		return nil, apierrors.NewInternalError(err)
	case len(revisions) == 0 && (!found || len(head.Rows) == 0):
		return nil, apierrors.NewNotFound(v1alpha1.Resource("revisionhistories"), name)
	}
	inventory, _, err := e.inventories.Load(ctx, name)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	head.Name = name
	out := history(head, revisions)
	out.Repairs = repairs(name, inventory)
	return out, nil
}

// REST serves the virtual resource revisionhistories: histories by the name of the extension. They
// cannot be watched, so garbage collection and quota ignore them.
type REST struct {
	endpoint
	forgetting    Forgetting
	chainVersions ChainVersions
}

// SubresourceREST serves the subresource history of a revision: the history of its extension.
type SubresourceREST struct{ endpoint }

var (
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.TableConvertor       = &REST{}
	_ rest.Getter               = &SubresourceREST{}
	_ rest.TableConvertor       = &SubresourceREST{}
)

// NewREST returns the virtual resource.
func NewREST(revisions Revisions, heads Forgetting, inventories Inventories, chainVersions ChainVersions) *REST {
	return &REST{
		endpoint: endpoint{revisions: revisions, heads: heads, inventories: inventories}, forgetting: heads, chainVersions: chainVersions,
	}
}

// NewSubresourceREST returns the subresource.
func NewSubresourceREST(revisions Revisions, heads Heads, inventories Inventories) *SubresourceREST {
	return &SubresourceREST{endpoint{revisions: revisions, heads: heads, inventories: inventories}}
}

// NamespaceScoped is false, as for revisions.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name for kubectl.
func (*REST) GetSingularName() string { return "revisionhistory" }

// Get returns the history of the extension with a name.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return r.read(ctx, name)
}

// Get returns the history of a revision's extension.
func (r *SubresourceREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if _, err := r.revisions.Stored(ctx, name); err != nil {
		return nil, err
	}
	extension, _, _ := olm.ChainOf(name)
	return r.read(ctx, extension)
}
