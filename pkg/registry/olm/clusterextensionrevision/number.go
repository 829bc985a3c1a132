package clusterextensionrevision

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// Heads keeps the numbers of chains, as a *chain.Heads does.
type Heads interface {
	// Advance takes a number of a chain for a revision that is about to be
	// written. A number that is not free is a *chain.NumberUsedError.
	Advance(ctx context.Context, chain string, number int64, uid types.UID) error
	// AdvanceHolding is Advance for a revision that holds the chain's owner from
	// when it is confirmed.
	AdvanceHolding(ctx context.Context, chain string, number int64, uid types.UID, ownerGeneration int64) error
	// Get returns the head of a chain, and whether there is one.
	Get(ctx context.Context, chain string) (chain.Head, bool, error)
	// Confirm notes that the revision was written, and what history keeps of
	// it.
	Confirm(ctx context.Context, chain string, number int64, uid types.UID, row chain.Row) error
}

// advance takes the revision's number.
func (r *REST) advance(ctx context.Context, revision *olm.ClusterExtensionRevision) error {
	// Validation has seen the name.
	name, number, _ := olm.ChainOf(revision.Name)
	take := func() error { return r.heads.Advance(ctx, name, number, revision.UID) }
	if back := rollbackFrom(ctx); back != nil && back.holds {
		take = func() error {
			return r.heads.AdvanceHolding(ctx, name, number, revision.UID, back.ownerGeneration)
		}
	}
	err := take()
	var used *chain.NumberUsedError
	if errors.As(err, &used) {
		return r.numberUsed(ctx, revision, used.Highest, used.Next)
	}
	if err != nil {
		return asStatus(err)
	}
	return nil
}

// wouldAdvance answers as advance does, and takes nothing.
func (r *REST) wouldAdvance(ctx context.Context, revision *olm.ClusterExtensionRevision) error {
	name, number, _ := olm.ChainOf(revision.Name)
	head, _, err := r.heads.Get(ctx, name)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("reading which numbers %s has used: %w", name, err))
	}
	if next := head.Next(); next == 0 || number < next {
		return r.numberUsed(ctx, revision, head.Highest, next)
	}
	return nil
}

// numberUsed is the answer when the revision's number is not free. The usual
// reason is that this very revision exists, and the store would say so if it came
// that far.
func (r *REST) numberUsed(ctx context.Context, revision *olm.ClusterExtensionRevision, highest, next int64) error {
	name, number, _ := olm.ChainOf(revision.Name)
	stored, err := r.Stored(ctx, revision.Name)
	switch {
	case err == nil:
		return alreadyExists(stored)
	case !apierrors.IsNotFound(err):
		return asStatus(err)
	}
	return invalid(revision, field.ErrorList{field.Invalid(field.NewPath("spec", "revision"), number, fmt.Sprintf(
		"numbers of an extension only grow, also when revisions are deleted: %d is the highest that %s has used, %s", highest, name, following(next)))})
}

// alreadyExists is what the generic store says of an object that is in the way.
func alreadyExists(stored *olm.ClusterExtensionRevision) error {
	exists := apierrors.NewAlreadyExists(v1alpha1.Resource(resource), stored.Name)
	if stored.DeletionTimestamp != nil {
		exists.ErrStatus.Message = "object is being deleted: " + exists.ErrStatus.Message
	}
	return exists
}

// following says which number may be used, 0 for none.
func following(next int64) string {
	if next == 0 {
		return "and there is none above it"
	}
	return fmt.Sprintf("the next one is %d", next)
}

// confirm notes that the revision was written. When that fails the controllers
// do it later: the client has got what he asked for.
func (r *REST) confirm(ctx context.Context, created runtime.Object) {
	revision, ok := created.(*olm.ClusterExtensionRevision)
	if !ok {
		return
	}
	name, number, _ := olm.ChainOf(revision.Name)
	row := chain.Row{
		PackRoot: rootOf(revision), CreatedAt: revision.CreationTimestamp.Time,
		Version: revision.Annotations[v1alpha1.VersionAnnotation], Cause: revision.Annotations[v1alpha1.ChangeCauseAnnotation],
	}
	if _, of, ok := olm.ChainOf(revision.Annotations[v1alpha1.RollbackOfAnnotation]); ok {
		row.RollbackOf = of
	}
	if requester := revision.Status.RequestedBy; requester != nil {
		row.RequestedBy = requester.Username
	}
	if err := r.heads.Confirm(ctx, name, number, revision.UID, row); err != nil {
		klog.FromContext(ctx).Error(err, "The number of a new revision will be confirmed later", "revision", revision.Name)
	}
}
