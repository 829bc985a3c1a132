package leadership

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// StatusWriter writes the status of a revision whose resourceVersion is still this one, and
// makes it what is stored. Errors are those of a request.
type StatusWriter interface {
	UpdateStatus(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision) error
}

// ownClient is a client of our own API that writes the status of revisions within this
// process: what a request takes besides that is more than the write.
type ownClient struct {
	client.Client
	own StatusWriter
}

// Status implements client.StatusClient.
func (c ownClient) Status() client.SubResourceWriter {
	return ownStatus{c.Client.Status(), c.own}
}

type ownStatus struct {
	client.SubResourceWriter
	own StatusWriter
}

// Update implements client.SubResourceWriter.
func (s ownStatus) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	revision, ok := object.(*v1alpha1.ClusterExtensionRevision)
	if !ok || len(options) > 0 {
		return s.SubResourceWriter.Update(ctx, object, options...)
	}
	err := s.own.UpdateStatus(ctx, revision)
	if apierrors.IsRequestEntityTooLargeError(err) {
		// A request leaves managedFields out then.
		return s.SubResourceWriter.Update(ctx, object)
	}
	return err
}
