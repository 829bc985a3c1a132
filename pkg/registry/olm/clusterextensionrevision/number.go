package clusterextensionrevision

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/chainversion"
)

// Heads stores the numbers of chains. *chain.Heads implements it.
type Heads interface {
	// Create takes the number of a new revision, and adds it to the history, in the same write as
	// the revision. seen is the head that was read before the chain was checked. Errors are
	// *chain.NumberUsedError, *chain.GapError for a too high number, and *chain.OpenError. The
	// write may fail with a *chain.OvertakenError. hold is the hold of a rollback, nil for none.
	Create(seen chain.Head, row chain.Row, hold *chain.Hold) *store.CompanionWrite
	// Note changes the history of a revision in the same write as the revision.
	Note(chain string, row chain.Row, succeeded bool) *store.CompanionWrite
	// Get returns the head of a chain, and whether there is one.
	Get(ctx context.Context, chain string) (chain.Head, bool, error)
	// Confirm records that the revision was written, and its row of history.
	Confirm(ctx context.Context, chain string, number int64, uid types.UID, row chain.Row) error
}

// seen returns the head of the chain that a new revision joins. It is read before the revision is
// judged: judgements by the chain's revisions hold while the head is unchanged.
func (r *REST) seen(ctx context.Context, revision *olm.ClusterExtensionRevision, dryRun bool) (chain.Head, error) {
	// Validation has checked the name.
	name, number, _ := olm.ChainOf(revision.Name)
	head, _, err := r.heads.Get(ctx, name)
	if err != nil {
		return chain.Head{}, asStatus(fmt.Errorf("reading which numbers %s has used: %w", name, err))
	}
	if head.Open() == 0 || head.Open() >= number {
		return head, nil
	}
	// The revision may exist, and only its confirmation may be missing.
	stored, err := r.Stored(ctx, olm.RevisionName(name, head.Open()))
	switch {
	case apierrors.IsNotFound(err):
		return head, nil
	case err != nil:
		return chain.Head{}, asStatus(err)
	case dryRun:
		head.Confirmed = true
		return head, nil
	}
	r.confirm(ctx, stored)
	if head, _, err = r.heads.Get(ctx, name); err != nil {
		return chain.Head{}, asStatus(fmt.Errorf("reading which numbers %s has used: %w", name, err))
	}
	return head, nil
}

// take adds the number of a revision to the revision's write. On a dry-run it only returns errors.
func (r *REST) take(ctx context.Context, revision *olm.ClusterExtensionRevision, seen chain.Head, dryRun bool) error {
	_, number, _ := olm.ChainOf(revision.Name)
	if err := seen.Admits(number); err != nil {
		return asStatus(r.refused(ctx, revision.Name, err))
	}
	if dryRun {
		return nil
	}
	row, err := rowOf(revision, stagedFrom(ctx).chain())
	if err != nil {
		return asStatus(err)
	}
	var hold *chain.Hold
	if back := rollbackFrom(ctx); back != nil && back.Holds {
		hold = &chain.Hold{Revision: number, UID: revision.UID, OwnerGeneration: back.OwnerGeneration}
	}
	chainversion.From(ctx).Accompany(r.heads.Create(seen, row, hold))
	return nil
}

// refused converts the error about a number that cannot be taken. It returns other errors
// unchanged.
func (r *REST) refused(ctx context.Context, name string, err error) error {
	revision := &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	var used *chain.NumberUsedError
	var gap *chain.GapError
	var open *chain.OpenError
	var overtaken *chain.OvertakenError
	busy := func(format string, args ...any) error {
		return apierrors.NewConflict(v1alpha1.Resource(resource), revision.Name, fmt.Errorf(format, args...))
	}
	switch {
	case errors.As(err, &used):
		return r.numberUsed(ctx, revision, used.Highest, used.Next)
	case errors.As(err, &gap):
		return invalid(revision, field.ErrorList{field.Invalid(field.NewPath("spec", "revision"), gap.Number, fmt.Sprintf(
			"must be from %d to %d: a revision of %s may leave out at most %d numbers, because they can never be used again", gap.Lowest, gap.Highest, gap.Chain, chain.MaxGap))})
	case errors.As(err, &open) && open.Open == 0:
		return busy("the import of %s is not finished: import its archive again, then try again", open.Chain)
	case errors.As(err, &open):
		below := olm.RevisionName(open.Chain, open.Open)
		return busy("%s is being created, or its creation was never finished: try again, or create %s", below, below)
	case errors.As(err, &overtaken):
		if stored, err := r.Stored(ctx, revision.Name); err == nil {
			return alreadyExists(ctx, stored)
		}
		if overtaken.Highest == 0 {
			return busy("%s was forgotten meanwhile: try again", overtaken.Chain)
		}
		first := olm.RevisionName(overtaken.Chain, overtaken.Highest)
		return busy("%s was created meanwhile%s: review it, then try again", first, r.by(ctx, first))
	default:
		return err
	}
}

// numberUsed returns the error for a number that is not free. Usually, this very revision exists.
func (r *REST) numberUsed(ctx context.Context, revision *olm.ClusterExtensionRevision, highest, next int64) error {
	name, number, _ := olm.ChainOf(revision.Name)
	stored, err := r.Stored(ctx, revision.Name)
	switch {
	case err == nil:
		return alreadyExists(ctx, stored)
	case !apierrors.IsNotFound(err):
		return asStatus(err)
	}
	return invalid(revision, field.ErrorList{field.Invalid(field.NewPath("spec", "revision"), number, fmt.Sprintf(
		"numbers of an extension only grow, also when revisions are deleted: %d is the highest that %s has used%s, %s", highest, name, r.by(ctx, olm.RevisionName(name, highest)), following(next)))})
}

// by describes the creator of a revision and the time, or returns "" if unknown.
func (r *REST) by(ctx context.Context, name string) string {
	stored, err := r.Stored(ctx, name)
	if err != nil || stored.Status.RequestedBy == nil {
		return ""
	}
	return ", " + createdBy(stored)
}

func createdBy(stored *olm.ClusterExtensionRevision) string {
	return fmt.Sprintf("%s created it at %s", stored.Status.RequestedBy.Username, stored.CreationTimestamp.UTC().Format(time.RFC3339))
}

// alreadyExists returns the generic store's error about an existing object. It names the creator if
// that is another user: two users may take the next number at once.
func alreadyExists(ctx context.Context, stored *olm.ClusterExtensionRevision) error {
	exists := apierrors.NewAlreadyExists(v1alpha1.Resource(resource), stored.Name)
	if who, ok := request.UserFrom(ctx); ok && stored.Status.RequestedBy != nil && stored.Status.RequestedBy.Username != who.GetName() {
		exists.ErrStatus.Message += ": " + createdBy(stored)
	}
	if stored.DeletionTimestamp != nil {
		exists.ErrStatus.Message = "object is being deleted: " + exists.ErrStatus.Message
	}
	return exists
}

// following describes the next free number; 0 means none.
func following(next int64) string {
	if next == 0 {
		return "and there is none above it: once nothing is left of the extension, a user with the right to delete revisionhistories can delete its history"
	}
	return fmt.Sprintf("the next one is %d", next)
}

// confirm records that the revision of a taken number exists. An older Penstock confirms after the
// write. If confirm fails, the controllers do it later.
func (r *REST) confirm(ctx context.Context, revision *olm.ClusterExtensionRevision) {
	name, _, _ := olm.ChainOf(revision.Name)
	row, err := rowOf(revision, nil)
	if err == nil {
		row.Counts = nil // the other revisions of the chain are not known here
		err = r.heads.Confirm(ctx, name, row.Revision, revision.UID, row)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "The number of a new revision will be confirmed later", "revision", revision.Name)
	}
}
