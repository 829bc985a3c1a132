package clusterextensionrevision

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// ownTimeout bounds a write of this process; the API server library has the same limit for
// requests.
const ownTimeout = 34 * time.Second

// Own writes revisions for the controllers of this process without a connection: nothing is
// encoded, authenticated or decoded. It uses the storage, strategy and admission of requests. The
// audit log has no events of these writes.
type Own struct {
	// Storage stores the revisions.
	Storage *Storage
	// Admission is the admission of requests.
	Admission admission.Interface
	// Scheme contains the types of the group.
	Scheme *runtime.Scheme
	// Refuse returns an error while the store accepts no writes.
	Refuse func() error
}

// UpdateStatus writes the status of a revision if the stored resourceVersion is unchanged. It then
// updates the given revision to the stored state, without managedFields. It returns the same errors
// as a request. The caller must own the revision's memory.
func (o *Own) UpdateStatus(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision) error {
	return o.update(ctx, o.Storage.Status, "status", revision)
}

// UpdateDeleted writes everything except status of a revision that is being deleted. Removing the
// last finalizer deletes the revision. UpdateDeleted does not update managedFields.
func (o *Own) UpdateDeleted(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision) error {
	return o.update(ctx, o.Storage.Revision, "", revision)
}

func (o *Own) update(ctx context.Context, endpoint rest.Updater, subresource string, revision *v1alpha1.ClusterExtensionRevision) error {
	if err := o.Refuse(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(genericrequest.WithNamespace(request.Internal(ctx), metav1.NamespaceNone), ownTimeout)
	defer cancel()
	next := &olm.ClusterExtensionRevision{}
	if err := v1alpha1.Convert_v1alpha1_ClusterExtensionRevision_To_olm_ClusterExtensionRevision(revision, next, nil); err != nil {
		return fmt.Errorf("converting %s: %w", revision.Name, err)
	}
	options := &metav1.UpdateOptions{}
	who, _ := genericrequest.UserFrom(ctx)
	attributes := func(next, stored runtime.Object) admission.Attributes {
		return admission.NewAttributesRecord(next, stored, v1alpha1.SchemeGroupVersion.WithKind("ClusterExtensionRevision"), metav1.NamespaceNone, revision.Name,
			v1alpha1.SchemeGroupVersion.WithResource(resource), subresource, admission.Update, options, false, who)
	}
	interfaces := admission.NewObjectInterfacesFromScheme(o.Scheme)
	// managedFields stay unchanged: they contain no status fields of controllers (see
	// forgetStatusManagers).
	keep := func(_ context.Context, next, stored runtime.Object) (runtime.Object, error) {
		next.(*olm.ClusterExtensionRevision).ManagedFields = stored.(*olm.ClusterExtensionRevision).ManagedFields
		return next, nil
	}
	admit := func(ctx context.Context, next, stored runtime.Object) (runtime.Object, error) {
		if mutating, ok := o.Admission.(admission.MutationInterface); ok && mutating.Handles(admission.Update) {
			return next, mutating.Admit(ctx, attributes(next, stored), interfaces)
		}
		return next, nil
	}
	validate := rest.AdmissionToValidateObjectUpdateFunc(o.Admission, attributes(nil, nil), interfaces)
	written, _, err := endpoint.Update(ctx, revision.Name, rest.DefaultUpdatedObjectInfo(next, keep, admit), rest.ValidateAllObjectFunc, validate, false, options)
	if err != nil {
		return err
	}
	seen := v1alpha1.ClusterExtensionRevision{}
	if err := seenAs(written.(*olm.ClusterExtensionRevision), &seen); err != nil {
		return err
	}
	*revision = seen
	return nil
}
