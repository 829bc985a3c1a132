// Package retention is the controller that deletes the oldest archived revisions of a chain. The
// history of the chain keeps a row for each deleted revision.
package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
)

// Keep is the number of archived revisions that each chain keeps.
const Keep = 5

// Add registers the controller with a manager.
func Add(mgr manager.Manager, c client.Client) error {
	err := builder.ControllerManagedBy(mgr).
		Named("retention").
		Watches(&olmv1alpha1.ClusterExtensionRevision{}, handler.EnqueueRequestsFromMapFunc(bychain.Requests),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{SkipNameValidation: ptr.To(true)}).
		Complete(&reconciler{client: c})
	if err != nil {
		return fmt.Errorf("setting up the retention controller: %w", err)
	}
	return nil
}

type reconciler struct {
	client client.Client
}

// Reconcile deletes the revisions of a chain that exceed its history limit.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	revisions, err := bychain.List(ctx, r.client, request.Name)
	if errors.As(err, new(*bychain.UnreadableError)) {
		return ctrl.Result{}, nil // its chain stays unchanged
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the revisions of extension %s: %w", request.Name, err)
	}
	for _, revision := range surplus(revisions) {
		// The resourceVersion protects a revision that changed since it was read.
		precondition := client.Preconditions{UID: &revision.UID, ResourceVersion: &revision.ResourceVersion}
		err := r.client.Delete(ctx, &revision, precondition, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			continue // it was deleted or changed, and that event causes the next pass
		}
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("deleting archived revision %s: %w", revision.Name, err)
		}
		klog.FromContext(ctx).Info("Deleted an archived revision", "revision", revision.Name, "keep", Keep)
	}
	return ctrl.Result{}, nil
}

// surplus returns the archived revisions beyond those with the Keep highest numbers. It excludes
// revisions that are being deleted. It also excludes revisions that still have objects in the
// cluster: their deletion would delete these objects, perhaps before a user has acknowledged that.
func surplus(revisions []olmv1alpha1.ClusterExtensionRevision) []olmv1alpha1.ClusterExtensionRevision {
	archived := slices.DeleteFunc(slices.Clone(revisions), func(r olmv1alpha1.ClusterExtensionRevision) bool {
		return r.Spec.LifecycleState != olmv1alpha1.LifecycleStateArchived || !r.DeletionTimestamp.IsZero() ||
			meta.IsStatusConditionTrue(r.Status.Conditions, olmv1alpha1.ConditionProgressing)
	})
	bychain.NewestFirst(archived)
	return archived[min(Keep, len(archived)):]
}
