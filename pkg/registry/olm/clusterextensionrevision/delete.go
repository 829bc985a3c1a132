package clusterextensionrevision

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store/chainversion"
	"github.com/penstock-project/penstock/pkg/text"
)

// longestUser bounds the recorded part of a user's name, in bytes.
const longestUser = 253

// Delete deletes a revision, or marks it as being deleted while it has finalizers. A delete with
// propagation policy Orphan sets spec.teardownPolicy in the same write. A dry-run lists in warnings
// the objects that would be deleted.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	orphans := false
	validate = recordDeletion(validate, options)
	out, done, err := r.Store.Delete(chainversion.With(ctx), name, func(ctx context.Context, obj runtime.Object) error {
		if err := r.judge(ctx, name); err != nil {
			return err
		}
		if revision, ok := obj.(*olm.ClusterExtensionRevision); ok {
			orphans = asksForOrphans(revision, options)
		}
		return validate(ctx, obj)
	}, options)
	if err == nil && options != nil && dryrun.IsDryRun(options.DryRun) {
		r.foretell(ctx, name, orphans)
	}
	return out, done, changed(name, err)
}

// recordDeletion wraps the validation of a delete. It writes the deleting user, and the request to
// keep the objects, into the revision.
//
// The store calls the validation inside the update that sets deletionTimestamp, and passes the very
// object that it then writes. So one write contains both. See
// updateForGracefulDeletionAndFinalizers in registry/store.go. The library does not promise to pass
// the object itself; the tests of this package delete real revisions to check it. The documented
// hook, CheckGracefulDelete, is not called for a revision that is already being deleted, but a
// later request to keep the objects must work too.
func recordDeletion(validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		revision, ok := obj.(*olm.ClusterExtensionRevision)
		orphans := ok && asksForOrphans(revision, options)
		if orphans {
			// Deleting and keeping the objects need different rights.
			ctx = request.WithOrphans(ctx)
		}
		if err := validate(ctx, obj); err != nil {
			return err
		}
		if ok {
			setAnnotation(revision, v1alpha1.DeletedByAnnotation, deletedBy(ctx, revision.Annotations[v1alpha1.DeletedByAnnotation]))
		}
		if !orphans || revision.Spec.TeardownPolicy == olm.TeardownPolicyOrphan {
			return nil
		}
		revision.Spec.TeardownPolicy = olm.TeardownPolicyOrphan
		if revision.DeletionTimestamp != nil {
			// The store increments the generation at the first delete.
			revision.Generation++
		}
		return nil
	}
}

// deletedBy returns the first user who deleted a revision, or retention if no user did.
func deletedBy(ctx context.Context, before string) string {
	who, ok := genericrequest.UserFrom(ctx)
	switch {
	case !ok || before != "" && before != v1alpha1.DeletedByRetention:
		return before
	case request.IsInternal(ctx, who):
		return v1alpha1.DeletedByRetention
	default:
		return text.Clip(who.GetName(), longestUser)
	}
}

// asksForOrphans decides as the store does for the finalizer of garbage collection: explicit
// options first, then the object's finalizers.
func asksForOrphans(revision *olm.ClusterExtensionRevision, options *metav1.DeleteOptions) bool {
	if options != nil {
		if orphan := options.OrphanDependents; orphan != nil { //nolint:staticcheck // deprecated, and sent by old clients
			return *orphan
		}
		if policy := options.PropagationPolicy; policy != nil {
			return *policy == metav1.DeletePropagationOrphan
		}
	}
	for _, finalizer := range revision.Finalizers {
		switch finalizer {
		case metav1.FinalizerOrphanDependents:
			return true
		case metav1.FinalizerDeleteDependents:
			return false
		}
	}
	return false
}
