package leadership

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// RevisionWriter writes revisions whose stored resourceVersion is unchanged, and updates the given
// object to the stored state. It returns the same errors as a request.
type RevisionWriter interface {
	// UpdateStatus writes status.
	UpdateStatus(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision) error
	// UpdateDeleted writes everything except status of a revision that is being deleted.
	UpdateDeleted(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision) error
}

// ownClient is a client of Penstock's own API. It writes the status of revisions, and deleted
// revisions' finalizers, within this process. The overhead of a request would exceed the cost of
// the write. Other writes go through the API, which records their managers in managedFields.
type ownClient struct {
	client.Client
	own RevisionWriter
}

// Update implements client.Writer.
func (c ownClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	revision, ok := object.(*v1alpha1.ClusterExtensionRevision)
	if !ok || revision.DeletionTimestamp.IsZero() || len(options) > 0 {
		return c.Client.Update(ctx, object, options...)
	}
	return c.own.UpdateDeleted(ctx, revision)
}

// Status implements client.StatusClient.
func (c ownClient) Status() client.SubResourceWriter {
	return ownStatus{c.Client.Status(), c.own}
}

type ownStatus struct {
	client.SubResourceWriter
	own RevisionWriter
}

// Update implements client.SubResourceWriter.
func (s ownStatus) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	revision, ok := object.(*v1alpha1.ClusterExtensionRevision)
	if !ok || len(options) > 0 {
		return s.SubResourceWriter.Update(ctx, object, options...)
	}
	err := s.own.UpdateStatus(ctx, revision)
	if apierrors.IsRequestEntityTooLargeError(err) {
		// A request would leave managedFields out.
		return s.SubResourceWriter.Update(ctx, object)
	}
	return err
}
