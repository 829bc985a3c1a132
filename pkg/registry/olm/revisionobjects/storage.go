package revisionobjects

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Revisions reads revisions. *clusterextensionrevision.REST implements it.
type Revisions interface {
	// Stored returns a stored revision.
	Stored(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error)
}

// Live reads the current state of a revision's objects.
type Live interface {
	// Objects returns only objects that the user of the context may get. It counts the other
	// objects in Withheld. The error is the answer to the user.
	Objects(ctx context.Context, revision *olm.ClusterExtensionRevision) (*v1alpha1.RevisionObjects, error)
}

// SubresourceREST serves the subresource.
type SubresourceREST struct {
	revisions Revisions
	live      Live
	table
}

var (
	_ rest.Getter         = &SubresourceREST{}
	_ rest.TableConvertor = &SubresourceREST{}
)

// NewSubresourceREST returns the subresource.
func NewSubresourceREST(revisions Revisions, live Live) *SubresourceREST {
	return &SubresourceREST{revisions: revisions, live: live}
}

// New returns an empty answer.
func (*SubresourceREST) New() runtime.Object { return &v1alpha1.RevisionObjects{} }

// Destroy does nothing.
func (*SubresourceREST) Destroy() {}

// Get returns the current state of a revision's objects.
func (r *SubresourceREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	revision, err := r.revisions.Stored(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.live.Objects(ctx, revision)
}
