package chain

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/retention"
)

// archive archives the older revisions once the newest has succeeded.
func (s *scope) archive(ctx context.Context) error {
	if len(s.layers) == 0 || len(s.invalid) > 0 {
		return nil
	}
	older := s.older()
	if len(older) == 0 {
		return nil
	}
	newest := s.layers[0]
	if newest.Spec.LifecycleState != olmv1alpha1.LifecycleStateActive ||
		!meta.IsStatusConditionTrue(newest.Status.Conditions, olmv1alpha1.ConditionSucceeded) || !s.report.Layers[0].Complete {
		return nil
	}
	for _, older := range older {
		updated := older.DeepCopy()
		updated.Spec.LifecycleState = olmv1alpha1.LifecycleStateArchived
		if done, err := s.patch(ctx, updated, older); err != nil || !done {
			return err
		}
		s.event(older, false, eventArchived, fmt.Sprintf("revision %d has succeeded", newest.Spec.Revision))
	}
	return nil
}

// older are the revisions that the newest layer replaces: also those that were handed to Helm
// before it took their objects back.
func (s *scope) older() []*olmv1alpha1.ClusterExtensionRevision {
	older := slices.Clone(s.layers[1:])
	for i := range s.revisions {
		if one := &s.revisions[i]; isKept(one) && one.Spec.Revision < s.layers[0].Spec.Revision {
			older = append(older, one)
		}
	}
	return older
}

// release lets go of revisions that are being deleted once no object carries
// their content. The API notes in history when they go.
func (s *scope) release(ctx context.Context) error {
	for i := range s.revisions {
		revision := &s.revisions[i]
		if !s.free(revision) {
			continue
		}
		updated := revision.DeepCopy()
		controllerutil.RemoveFinalizer(updated, olmv1alpha1.TeardownFinalizer)
		done, err := s.wrote(updated, s.Client.Update(ctx, updated))
		if err != nil {
			return err
		}
		if done {
			reason, message := deletion(revision)
			s.event(revision, false, reason, message)
		}
	}
	return nil
}

// removed is true for a revision that Penstock itself deletes, and no user.
func removed(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[olmv1alpha1.DeletedByAnnotation] == olmv1alpha1.DeletedByRetention
}

// withdrawn is true for a proposal that its owner takes back: retention deletes archived revisions.
func withdrawn(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return removed(revision) && revision.Annotations[olmv1alpha1.ProposedAnnotation] == "true" && revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused
}

// deletion returns the reason of a deleted revision, and a message.
func deletion(revision *olmv1alpha1.ClusterExtensionRevision) (reason, message string) {
	by := revision.Annotations[olmv1alpha1.DeletedByAnnotation]
	switch {
	case withdrawn(revision):
		return eventRemoved, "withdrawn: nobody has approved this proposal, and its owner no longer asks for it"
	case removed(revision):
		return eventRemoved, fmt.Sprintf("removed by retention: of the archived revisions the newest %d are kept", retention.Keep)
	case by != "":
		return eventDeleted, fmt.Sprintf("deleted by %s; no object in the cluster belongs to it any more", by)
	default:
		return eventDeleted, "deleted; no object in the cluster belongs to it any more"
	}
}

// free is true for a revision that is being deleted, and held by nothing but our
// finalizer.
func (s *scope) free(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return !revision.DeletionTimestamp.IsZero() && s.ledger.holder(revision.Spec.Revision) == nil &&
		controllerutil.ContainsFinalizer(revision, olmv1alpha1.TeardownFinalizer)
}

// patch changes a revision that is still as it was read, and tells whether it was.
// One that has changed or is gone brings a pass of its own.
func (s *scope) patch(ctx context.Context, updated, read *olmv1alpha1.ClusterExtensionRevision) (bool, error) {
	return s.wrote(updated, s.Client.Patch(ctx, updated, client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})))
}

// wrote is patch behind its request, whose error is given.
func (s *scope) wrote(updated *olmv1alpha1.ClusterExtensionRevision, err error) (bool, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		s.stale = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.known.wrote(updated)
	return true, nil
}
