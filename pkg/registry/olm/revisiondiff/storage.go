package revisiondiff

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
)

// subresource is the subresource that a caller must have the right to get, for each revision.
const subresource = "diff"

// endpoint is the shared part of the resource and the subresource.
type endpoint struct {
	comparer *Comparer
	table
}

// New returns an empty diff.
func (*endpoint) New() runtime.Object { return &v1alpha1.RevisionDiff{} }

// Destroy does nothing.
func (*endpoint) Destroy() {}

// NewGetOptions returns the query parameters. The subresource has no subpath.
func (*endpoint) NewGetOptions() (runtime.Object, bool, string) {
	return &v1alpha1.RevisionDiffOptions{}, false, ""
}

// REST serves the virtual resource revisiondiffs: diffs by name. They cannot be listed or watched,
// so garbage collection and quota ignore them.
type REST struct{ endpoint }

// SubresourceREST serves the subresource diff of a revision.
type SubresourceREST struct{ endpoint }

var (
	_ rest.GetterWithOptions    = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.TableConvertor       = &REST{}
	_ rest.GetterWithOptions    = &SubresourceREST{}
	_ rest.TableConvertor       = &SubresourceREST{}
)

// NewREST returns the virtual resource.
func NewREST(comparer *Comparer) *REST { return &REST{endpoint{comparer: comparer}} }

// NewSubresourceREST returns the subresource.
func NewSubresourceREST(comparer *Comparer) *SubresourceREST {
	return &SubresourceREST{endpoint{comparer: comparer}}
}

// NamespaceScoped is false, as for revisions.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name for kubectl.
func (*REST) GetSingularName() string { return "revisiondiff" }

// Get returns the diff with a name. The caller needs the right to the diffs of both revisions,
// which is checked before their existence.
func (r *REST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	query, err := queryOf(options)
	if err != nil {
		return nil, err
	}
	asked, err := parse(name)
	if err != nil {
		return nil, err
	}
	caller := access.New(r.comparer.deps.Authorizer)
	for _, side := range []string{asked.from, asked.to} {
		if side == "" || side == v1alpha1.Live {
			continue
		}
		if err := caller.NeedSubresource(ctx, side, subresource); err != nil {
			return nil, err
		}
	}
	if asked.to == v1alpha1.Live {
		return r.live(ctx, asked.from, query)
	}
	from, to, err := r.sides(ctx, caller, asked)
	if err != nil {
		return nil, err
	}
	return r.comparer.Between(ctx, from, to, query)
}

func (r *REST) sides(ctx context.Context, caller *access.Caller, asked request) (from, to *olm.ClusterExtensionRevision, err error) {
	if asked.from != "" {
		if from, err = r.comparer.deps.Revisions.Stored(ctx, asked.from); err != nil {
			return nil, nil, err
		}
	}
	if asked.to != "" {
		if to, err = r.comparer.deps.Revisions.Stored(ctx, asked.to); err != nil {
			return nil, nil, err
		}
	}
	var neighbour *olm.ClusterExtensionRevision
	switch {
	case asked.from == "":
		from, err = r.comparer.before(ctx, asked.to)
		neighbour = from
	case asked.to == "":
		to, err = r.comparer.after(ctx, asked.from)
		neighbour = to
		if err == nil && to == nil {
			err = apierrors.NewBadRequest(fmt.Sprintf("%s is the newest revision of its extension: there is none to compare it with", asked.from))
		}
	}
	if err == nil && neighbour != nil {
		err = caller.NeedSubresource(ctx, neighbour.Name, subresource)
	}
	return from, to, err
}

func (r *REST) live(ctx context.Context, name string, query *v1alpha1.RevisionDiffOptions) (runtime.Object, error) {
	revision, err := r.comparer.deps.Revisions.Stored(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.comparer.live(ctx, revision, query)
}

// Get returns the changes of a revision compared with the previous revision of its chain. The right
// to the subresource includes them.
func (r *SubresourceREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	query, err := queryOf(options)
	if err != nil {
		return nil, err
	}
	revision, err := r.comparer.deps.Revisions.Stored(ctx, name)
	if err != nil {
		return nil, err
	}
	before, err := r.comparer.before(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.comparer.Between(ctx, before, revision, query)
}

func queryOf(options runtime.Object) (*v1alpha1.RevisionDiffOptions, error) {
	query, ok := options.(*v1alpha1.RevisionDiffOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading a diff: options are a %T", options))
	}
	return query, nil
}
