package revisionproposal

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
)

// Differ compares a revision that is not stored. *revisiondiff.Comparer implements it.
type Differ interface {
	// Before returns the revision for the comparison with a proposed revision, or nil.
	Before(ctx context.Context, proposed string) (*olm.ClusterExtensionRevision, error)
	// Proposed returns the changes that the caller may see.
	Proposed(ctx context.Context, from, to *olm.ClusterExtensionRevision, manifests []manifest.Object) (*v1alpha1.RevisionDiff, error)
}

// Deps are the dependencies of NewREST.
type Deps struct {
	// Revisions is the main resource.
	Revisions *clusterextensionrevision.REST
	// Scheme contains the types of the group.
	Scheme *runtime.Scheme
	// Admission is the server's admission for creates of revisions.
	Admission admission.Interface
	// Authorizer checks the rights of callers.
	Authorizer authorizer.UnconditionalAuthorizer
	// Differ computes the diff, and Table prints it.
	Differ Differ
	Table  rest.TableConvertor
}

// REST serves the subresource proposal: a POST takes a revision of that name, and answers
// with a RevisionDiff. Nothing is stored: no revision, no manifest, no number.
type REST struct {
	deps      Deps
	proposals *clusterextensionrevision.Proposals
}

var (
	_ rest.NamedCreater    = &REST{}
	_ rest.StorageMetadata = &REST{}
	_ rest.TableConvertor  = &REST{}
)

// NewREST returns the subresource.
func NewREST(deps Deps) *REST {
	return &REST{deps: deps, proposals: clusterextensionrevision.NewProposals(deps.Revisions, deps.Scheme, deps.Admission)}
}

// New returns the type of the request.
func (*REST) New() runtime.Object { return &olm.ClusterExtensionRevision{} }

// Destroy does nothing: the main resource owns the store.
func (*REST) Destroy() {}

// ProducesMIMETypes returns no further types.
func (*REST) ProducesMIMETypes(string) []string { return nil }

// ProducesObject returns the type of the answer, for the API descriptions.
func (*REST) ProducesObject(string) any { return v1alpha1.RevisionDiff{} }

// ConvertToTable prints the diff.
func (r *REST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.deps.Table.ConvertToTable(ctx, object, options)
}

// Create compares a proposed revision:
//
//  1. Check that the caller may create it, and may get the diff of the revision to compare with.
//  2. Run a create as a dry-run for the caller.
//  3. Return the changes.
//
// An invalid revision gets the same error as in a create.
func (r *REST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	proposed := obj.(*olm.ClusterExtensionRevision)
	if proposed.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", proposed.Name, name))
	}
	if validate != nil {
		if err := validate(ctx, proposed.DeepCopy()); err != nil {
			return nil, err
		}
	}
	caller := access.New(r.deps.Authorizer)
	if err := caller.NeedCreate(ctx); err != nil {
		return nil, err
	}
	before, err := r.deps.Differ.Before(ctx, name)
	if err != nil {
		return nil, err
	}
	if before != nil {
		if err := caller.NeedSubresource(ctx, before.Name, "diff"); err != nil {
			return nil, err
		}
	}
	would, manifests, err := r.proposals.Try(ctx, proposed, options)
	if err != nil {
		return nil, err
	}
	return r.deps.Differ.Proposed(ctx, before, would, manifests)
}
