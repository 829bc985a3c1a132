package clusterextensionrevision

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/store/standing"
)

// Delete deletes a revision, or marks it as being deleted while it has
// finalizers. A delete that asks for orphans sets spec.teardownPolicy in the
// same write.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	validate = recordOrphan(validate, options)
	out, done, err := r.Store.Delete(standing.With(ctx), name, func(ctx context.Context, obj runtime.Object) error {
		if err := r.judge(ctx, name); err != nil {
			return err
		}
		return validate(ctx, obj)
	}, options)
	return out, done, changed(name, err)
}

// recordOrphan wraps the validation of a delete so that it also writes the wish
// to keep the objects into the revision.
//
// The store calls the validation first thing inside the update that sets
// deletionTimestamp, with the very object that it then writes; so the wish and
// the deletion are one write, and no controller sees one without the other.
// (registry/store.go, updateForGracefulDeletionAndFinalizers. That the object is
// passed and not a copy is not promised: the tests of this package delete for
// real.) The documented hook, CheckGracefulDelete, is not called for a revision
// that is being deleted already, and "stop, I meant orphan" must not be lost.
func recordOrphan(validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		revision, ok := obj.(*olm.ClusterExtensionRevision)
		orphans := ok && asksForOrphans(revision, options)
		if orphans {
			// Deleting the objects and leaving them need different rights.
			ctx = request.WithOrphans(ctx)
		}
		if err := validate(ctx, obj); err != nil {
			return err
		}
		if !orphans || revision.Spec.TeardownPolicy == olm.TeardownPolicyOrphan {
			return nil
		}
		revision.Spec.TeardownPolicy = olm.TeardownPolicyOrphan
		if revision.DeletionTimestamp != nil {
			// The first delete counts the generation itself.
			revision.Generation++
		}
		return nil
	}
}

// asksForOrphans decides as the store does for the finalizer of garbage
// collection: explicit options first, then what the object has.
func asksForOrphans(revision *olm.ClusterExtensionRevision, options *metav1.DeleteOptions) bool {
	if options != nil {
		//lint:ignore SA1019 deprecated, and still sent by old clients
		if orphan := options.OrphanDependents; orphan != nil {
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
