package revisionrollback

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/registry/printing"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// maxCauseBytes is the longest cause that the history stores.
const maxCauseBytes = 1024

// Heads reads the numbers of chains. *chain.Heads implements it.
type Heads interface {
	// Get returns the head of a chain, and whether there is one.
	Get(ctx context.Context, chain string) (chain.Head, bool, error)
}

// Differ returns the changes between two revisions that the caller may see. *revisiondiff.Comparer
// implements it.
type Differ interface {
	Between(ctx context.Context, from, to *olm.ClusterExtensionRevision, options *v1alpha1.RevisionDiffOptions) (*v1alpha1.RevisionDiff, error)
}

// StoredVersions reads the stored versions of definitions in a cluster.
type StoredVersions interface {
	// StoredVersions returns status.storedVersions of a CustomResourceDefinition, or none if it
	// does not exist. target is the Secret of its cluster, or empty.
	StoredVersions(ctx context.Context, target, name string) ([]string, error)
}

// Deps are the dependencies of NewREST.
type Deps struct {
	// Revisions is the main resource.
	Revisions *clusterextensionrevision.REST
	// Heads reads the used numbers.
	Heads Heads
	// Scheme contains the types of the group.
	Scheme *runtime.Scheme
	// Admission is the server's admission for creates of revisions.
	Admission admission.Interface
	// Authorizer checks whether the caller may create revisions.
	Authorizer authorizer.UnconditionalAuthorizer
	// Differ computes the diff that a dry-run returns.
	Differ Differ
	// Owners reads the generation of the owner that a rollback holds.
	Owners clusterextensionrevision.Owners
	// StoredVersions checks whether a rollback would remove a version that stored custom resources
	// have.
	StoredVersions StoredVersions
}

// REST serves the subresource rollback: a POST creates the next revision of the chain with the
// content of this revision. Both revisions refer to the same pack, and no manifest is sent.
type REST struct {
	deps      Deps
	revisions *clusterextensionrevision.Rollbacks
}

var (
	_ rest.NamedCreater   = &REST{}
	_ rest.TableConvertor = &REST{}
)

// NewREST returns the subresource.
func NewREST(deps Deps) *REST {
	return &REST{deps: deps, revisions: clusterextensionrevision.NewRollbacks(deps.Revisions, deps.Scheme, deps.Admission)}
}

// New returns an empty request.
func (*REST) New() runtime.Object { return &v1alpha1.RevisionRollback{} }

// Destroy does nothing: the main resource owns the store.
func (*REST) Destroy() {}

// Create rolls back:
//
//  1. Validate the request, and run the admission of rollbacks.
//  2. Check that the caller may create the revision.
//  3. Find the content to restore.
//  4. Create the new revision for the caller, with all checks of a create.
//  5. Return the result, or the effect of a dry-run.
func (r *REST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	body := obj.(*v1alpha1.RevisionRollback)
	if errs := validateRollback(body); len(errs) > 0 {
		return nil, apierrors.NewInvalid(olm.Kind("RevisionRollback"), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, body.DeepCopy()); err != nil {
			return nil, err
		}
	}
	caller := access.New(r.deps.Authorizer)
	if err := caller.NeedCreate(ctx); err != nil {
		return nil, err
	}
	wanted, err := r.find(ctx, name, body.Spec.From)
	if err != nil {
		return nil, err
	}
	if err := r.keepsStoredVersions(ctx, caller, wanted); err != nil {
		return nil, err
	}
	created, err := r.create(ctx, wanted, body.Spec.Cause, options)
	if err != nil {
		return nil, err
	}
	dryRun := dryrun.IsDryRun(options.DryRun)
	out := &v1alpha1.RevisionRollback{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       body.Spec,
		Status:     v1alpha1.RevisionRollbackStatus{Revision: created.Name, From: wanted.newest.Name},
	}
	if !dryRun {
		out.Status.RevisionUID = string(created.UID)
		return out, nil
	}
	out.Status.Diff, err = r.diff(ctx, caller, wanted, created.Name)
	return out, err
}

func validateRollback(body *v1alpha1.RevisionRollback) field.ErrorList {
	cause, path := body.Spec.Cause, field.NewPath("spec", "cause")
	switch {
	case len(cause) > maxCauseBytes:
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, maxCauseBytes)}
	case !utf8.ValidString(cause):
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be valid UTF-8")}
	}
	return nil
}

// create stores the new revision as the endpoint of the main resource would. Admission mutates and
// validates it as a new revision, not as a rollback.
func (r *REST) create(ctx context.Context, wanted rollback, cause string, options *metav1.CreateOptions) (*olm.ClusterExtensionRevision, error) {
	out, err := r.revisions.Create(ctx, wanted.revision(cause), r.rollbackOf(ctx, wanted), options)
	if err != nil {
		return nil, r.overtaken(ctx, wanted, err)
	}
	audit.AddAuditAnnotation(ctx, v1alpha1.RollbackOfAnnotation, wanted.target.Name)
	return out, nil
}

// overtaken returns a conflict if another create was faster: the revision to roll back from is no
// longer the newest. The caller may try again.
func (r *REST) overtaken(ctx context.Context, wanted rollback, err error) error {
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsInvalid(err) {
		return err
	}
	newest, newestErr := r.newest(ctx, wanted.chain)
	if newestErr != nil || newest == nil || newest.UID == wanted.newest.UID {
		return err
	}
	return conflict(wanted.target.Name, fmt.Sprintf("%s was created meanwhile: review it, then try again", newest.Name))
}

// rollbackOf returns the hold on the owner of the extension, if it has an owner.
func (r *REST) rollbackOf(ctx context.Context, wanted rollback) clusterextensionrevision.Rollback {
	back := clusterextensionrevision.Rollback{Of: wanted.target.Name}
	owner := metav1.GetControllerOf(wanted.newest)
	if owner == nil {
		return back
	}
	back.Holds = true
	generation, err := r.deps.Owners.Generation(ctx, *owner)
	if err != nil {
		// A rollback is urgent, so this error does not refuse it. The owner is held more strictly
		// instead: until it is released.
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %s is held until it is released, as its generation could not be read: %v", owner.Kind, owner.Name, err))
		return back
	}
	back.OwnerGeneration = generation
	return back
}

// diff returns the changes of the rollback, if the caller may get diffs of both revisions.
func (r *REST) diff(ctx context.Context, caller *access.Caller, wanted rollback, name string) (*v1alpha1.RevisionDiff, error) {
	for _, revision := range []string{wanted.newest.Name, wanted.target.Name} {
		err := caller.NeedSubresource(ctx, revision, "diff")
		if apierrors.IsForbidden(err) {
			warning.AddWarning(ctx, "", "without a diff: "+err.Error())
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	// The content is the target's. The target's name would be misleading.
	renamed := *wanted.target
	renamed.Name = name
	return r.deps.Differ.Between(ctx, wanted.newest, &renamed, nil)
}

func conflict(name, detail string) error {
	return apierrors.NewConflict(v1alpha1.Resource("clusterextensionrevisions"), name, errors.New(detail))
}

// ConvertToTable prints the created revision.
func (*REST) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	done, ok := object.(*v1alpha1.RevisionRollback)
	if !ok {
		return nil, fmt.Errorf("printing a rollback: got a %T", object)
	}
	cells := []any{done.Name, done.Status.From, done.Status.Revision}
	out := &metav1.Table{Rows: []metav1.TableRow{printing.Row(cells, &v1alpha1.RevisionRollback{ObjectMeta: metav1.ObjectMeta{Name: done.Name}})}}
	return printing.Headed(out, options, []metav1.TableColumnDefinition{
		{Name: "Target", Type: "string", Description: "Revision whose content comes back."},
		{Name: "From", Type: "string", Description: "Newest revision until now."},
		{Name: "Revision", Type: "string", Description: "Revision that was created, or would be."},
	}), nil
}
