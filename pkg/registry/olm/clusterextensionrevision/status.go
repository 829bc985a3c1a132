package clusterextensionrevision

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/validation"
	shared "github.com/penstock-project/penstock/pkg/registry/strategy"
)

// statusStrategy is the strategy of the subresource status. Writes change only status, except the
// requester.
type statusStrategy struct{ *strategy }

var (
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

// GetResetFields returns the fields that writes of status cannot set.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return shared.ResetFields(v1alpha1.SchemeGroupVersion,
		fieldpath.MakePathOrDie("spec"),
		fieldpath.MakePathOrDie("metadata", "labels"),
		fieldpath.MakePathOrDie("metadata", "annotations"),
		fieldpath.MakePathOrDie("metadata", "finalizers"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
		fieldpath.MakePathOrDie("status", "requestedBy"),
	)
}

// PrepareForUpdate restores everything except status and the annotation that summarizes status.
func (statusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	revision, stored := obj.(*olm.ClusterExtensionRevision), old.(*olm.ClusterExtensionRevision)
	revision.Spec = stored.Spec
	metav1.ResetObjectMetaForStatus(&revision.ObjectMeta, &stored.ObjectMeta)
	revision.Status.RequestedBy = stored.Status.RequestedBy
	summarize(revision)
	if requester, ok := request.UserFrom(ctx); ok && requester.GetName() == user.APIServerUser {
		forgetStatusManagers(revision)
	}
}

// forgetStatusManagers removes entries of updates to status from managedFields. The controllers own
// all of status. The entries would be a fifth of every revision, in the store, in caches and in
// lists, also of metadata. Entries of applies to status have a meaning, and stay.
func forgetStatusManagers(revision *olm.ClusterExtensionRevision) {
	revision.ManagedFields = slices.DeleteFunc(revision.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "status" && entry.Operation == metav1.ManagedFieldsOperationUpdate
	})
}

// ValidateUpdate returns the errors in a status.
func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return objectmeta.Bounded(validation.ValidateRevisionStatusUpdate(obj.(*olm.ClusterExtensionRevision), old.(*olm.ClusterExtensionRevision)))
}

// WarningsOnUpdate returns no warnings.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
