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

// The result of writing a revision depends on the other revisions of its chain. So every create,
// update and delete is judged against the chain at the time of the write (see
// pkg/store/chainversion). The order is important:
//
//  1. judge reads the version of the chain.
//  2. Admission and validation read the revisions and the chain's objects in the cluster. Both are
//     at least as new as this version.
//  3. The store writes the record if the version is unchanged. Otherwise, the write starts again.
//
// A create uses the chain's revisions even before 1: their cluster, and its own predecessors. So it
// is judged against the version before that read.
//
// Writes of status and of the inventory do not change the version. Penstock itself makes these
// writes, and their effect was judged before. The Privilege plugin assumes that every object of an
// existing revision is written, and that every revision that may still succeed can be rolled back
// to.

// ChainVersions returns the versions of chains. *chainversion.ChainVersions implements it.
type ChainVersions interface {
	// Get returns etcd's revision of the last change of a chain's revisions.
	Get(ctx context.Context, chain string) (int64, error)
}

// judge records the version of the chain as a precondition of a write. The validation of each write
// calls it first.
func (r *REST) judge(ctx context.Context, name string) error {
	precondition := chainversion.From(ctx)
	chain, _, ok := olm.ChainOf(name)
	if precondition == nil || !ok {
		return nil // Nothing is written in this case: see the client of package chainversion.
	}
	at, err := r.chainVersions.Get(ctx, chain)
	if err != nil {
		return asStatus(err)
	}
	precondition.Made(chain, at)
	return nil
}

// judgeCreate works like judge, for a create. Its precondition is the version before the strategy
// read the chain's revisions: if the chain has changed since, data taken from it may be wrong.
func (r *REST) judgeCreate(ctx context.Context, name string) error {
	precondition, held := chainversion.From(ctx), stagedFrom(ctx)
	chain, _, ok := olm.ChainOf(name)
	if precondition == nil || !ok {
		return nil // as in judge
	}
	if err := held.failed(); err != nil {
		return asStatus(err) // the read of the revisions can have failed
	}
	precondition.Made(chain, held.stood())
	return nil
}

// maxAttempts bounds the attempts of a create whose chain keeps changing.
const maxAttempts = 5

// changed converts the error of a write that failed because its chain changed.
func changed(name string, err error) error {
	var meanwhile *chainversion.ChangedError
	if errors.As(err, &meanwhile) {
		return apierrors.NewConflict(v1alpha1.Resource(resource), name, fmt.Errorf("%w: review them, then try again", meanwhile))
	}
	if collected := (*store.CollectedError)(nil); errors.As(err, &collected) {
		conflict := apierrors.NewConflict(v1alpha1.Resource(resource), name, fmt.Errorf("%w: try again", collected))
		// The same request may succeed: clients that use SuggestsClientDelay send it again.
		conflict.ErrStatus.Details.RetryAfterSeconds = 1
		return conflict
	}
	return err
}

// beginsAnew reports whether a create must be judged again, and its manifests stored again.
func beginsAnew(err error) bool {
	var meanwhile *chainversion.ChangedError
	return errors.As(err, &meanwhile) || wasCollected(err)
}

// wasCollected reports whether the manifests of a write were collected before the write finished.
func wasCollected(err error) bool {
	var collected *store.CollectedError
	return errors.As(err, &collected)
}

// superseded refuses Penstock's own archival of a revision if no newer revision has replaced it.
// Penstock's rights are not checked, and the controllers rely on a cache. A user may have archived
// the newer revision since, with only the rights to its own objects.
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
