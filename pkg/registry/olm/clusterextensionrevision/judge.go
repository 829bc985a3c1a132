package clusterextensionrevision

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chainversion"
)

// The result of a write of a revision depends on the other revisions of its
// chain, so every create, update and delete of a revision is judged by the
// chain as it stands when it is written (see pkg/store/chainversion). The
// order is what makes it so:
//
//  1. judge reads how the chain stands,
//  2. admission and validation read the revisions, and what the chain has in the
//     cluster: both are at least as new,
//  3. the store writes the record if nothing changed since 1, and goes back to 1
//     otherwise.
//
// A create has taken something from the revisions of the chain before: the cluster that
// they go into, which ones it follows. It is judged as the chain stood before that.
//
// Writes of status are not counted, nor are those of the inventory: both are Penstock's
// own, and what they add is judged before it comes. Privilege takes every object of a
// revision as written from when it is there, and every one that may still succeed as one
// that is rolled back to.

// ChainVersions returns the versions of chains. *chainversion.ChainVersions implements it.
type ChainVersions interface {
	// Get returns etcd's revision of the last change of a chain's revisions.
	Get(ctx context.Context, chain string) (int64, error)
}

// judge is the first thing that the validation of a write does.
func (r *REST) judge(ctx context.Context, name string) error {
	precondition := chainversion.From(ctx)
	chain, _, ok := olm.ChainOf(name)
	if precondition == nil || !ok {
		return nil // Nothing is written then, see the client of package chainversion.
	}
	at, err := r.chainVersions.Get(ctx, chain)
	if err != nil {
		return asStatus(err)
	}
	precondition.Made(chain, at)
	return nil
}

// judgeCreate is judge for a create: the chain stands as it did before the strategy read
// its revisions. If it does not any more, what was taken from them, and validated by them, may
// not be so, and the write finds that out.
func (r *REST) judgeCreate(ctx context.Context, name string) error {
	precondition, held := chainversion.From(ctx), stagedFrom(ctx)
	chain, _, ok := olm.ChainOf(name)
	if precondition == nil || !ok {
		return nil // As in judge.
	}
	if err := held.failed(); err != nil {
		return asStatus(err) // The revisions might not have been read.
	}
	precondition.Made(chain, held.stood())
	return nil
}

// maxAttempts bounds how often a create is judged anew because its chain changes.
const maxAttempts = 5

// changed makes an answer of a write that was not done because of what happened in the
// chain meanwhile.
func changed(name string, err error) error {
	var meanwhile *chainversion.ChangedError
	if errors.As(err, &meanwhile) {
		return apierrors.NewConflict(v1alpha1.Resource(resource), name, fmt.Errorf("%w: look at them, then try again", meanwhile))
	}
	if collected := (*store.CollectedError)(nil); errors.As(err, &collected) {
		conflict := apierrors.NewConflict(v1alpha1.Resource(resource), name, fmt.Errorf("%w: try again", collected))
		// The same request may pass: clients that ask SuggestsClientDelay send it again.
		conflict.ErrStatus.Details.RetryAfterSeconds = 1
		return conflict
	}
	return err
}

// beginsAnew reports whether a create is judged anew, and its manifests stored again.
func beginsAnew(err error) bool {
	var meanwhile *chainversion.ChangedError
	return errors.As(err, &meanwhile) || wasCollected(err)
}

// wasCollected reports whether the manifests of a write were collected before it was done.
func wasCollected(err error) bool {
	var collected *store.CollectedError
	return errors.As(err, &collected)
}

// superseded refuses Penstock's own archival of a revision that no newer one has replaced.
// Penstock's rights are not checked for it. The controllers saw a newer revision in a cache. A
// user may have archived that one since, with only the rights for its own objects.
func (r *REST) superseded(ctx context.Context, updated, old *olm.ClusterExtensionRevision) error {
	if !isArchivedByPenstock(ctx, updated, old) {
		return nil
	}
	chain, number, _ := olm.ChainOf(updated.Name)
	revisions, err := r.Chain(ctx, chain)
	if err != nil {
		return asStatus(err)
	}
	for i := range revisions {
		newer := &revisions[i]
		if newer.Spec.Revision > number && newer.DeletionTimestamp == nil && newer.Spec.LifecycleState == olm.LifecycleStateActive &&
			meta.IsStatusConditionTrue(newer.Status.Conditions, v1alpha1.ConditionSucceeded) {
			return nil
		}
	}
	return apierrors.NewConflict(v1alpha1.Resource(resource), updated.Name, errors.New("it is archived once a newer revision has succeeded, and there is no such revision any more"))
}

// isArchivedByPenstock reports whether Penstock archives a revision in its own name.
func isArchivedByPenstock(ctx context.Context, updated, old *olm.ClusterExtensionRevision) bool {
	who, _ := genericrequest.UserFrom(ctx)
	return updated.Spec.LifecycleState == olm.LifecycleStateArchived && old.Spec.LifecycleState != olm.LifecycleStateArchived &&
		request.IsInternal(ctx, who)
}
