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

// archive archives the older revisions after the newest has succeeded.
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

// older returns the revisions that the newest layer replaces, including earlier revisions that were
// handed to Helm.
func (s *scope) older() []*olmv1alpha1.ClusterExtensionRevision {
	older := slices.Clone(s.layers[1:])
	for i := range s.revisions {
		if one := &s.revisions[i]; isKept(one) && one.Spec.Revision < s.layers[0].Spec.Revision {
			older = append(older, one)
		}
	}
	return older
}

// release removes the finalizer from deleted revisions whose content no object has any more. The
// API records their end in history.
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

// removed reports whether retention deletes the revision.
func removed(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[olmv1alpha1.DeletedByAnnotation] == olmv1alpha1.DeletedByRetention
}

// withdrawn reports whether the owner withdrew an unapproved proposal. (Retention itself deletes
// only archived revisions.)
func withdrawn(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return removed(revision) && revision.Annotations[olmv1alpha1.ProposedAnnotation] == "true" && revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused
}

// deletion returns the reason and message of the event for a deleted revision.
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

// free reports whether a deleted revision has no objects left, and still has Penstock's finalizer.
func (s *scope) free(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return !revision.DeletionTimestamp.IsZero() && s.ledger.holder(revision.Spec.Revision) == nil &&
		controllerutil.ContainsFinalizer(revision, olmv1alpha1.TeardownFinalizer)
}

// patch changes a revision if it has not changed since it was read, and reports whether it did. A
// changed or deleted revision causes a new pass.
func (s *scope) patch(ctx context.Context, updated, read *olmv1alpha1.ClusterExtensionRevision) (bool, error) {
	return s.wrote(updated, s.Client.Patch(ctx, updated, client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})))
}

// wrote handles the result of a write: it treats a conflict like patch, and remembers the written
// revision.
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
