package clusterextensionrevision

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Owners reads the owners of revisions.
type Owners interface {
	// Generation returns the current metadata.generation of a revision's owner. A missing owner is
	// an error.
	Generation(ctx context.Context, owner metav1.OwnerReference) (int64, error)
}

// Rollback describes the rollback that a create performs.
type Rollback struct {
	// Of is the revision whose content is restored.
	Of string
	// Holds is true if the chain's owner must not create a revision until its generation exceeds
	// OwnerGeneration. If OwnerGeneration is 0, the owner must wait for its release.
	Holds           bool
	OwnerGeneration int64
}

type rollbackKey struct{}

func rollbackFrom(ctx context.Context) *Rollback {
	back, _ := ctx.Value(rollbackKey{}).(*Rollback)
	return back
}

// Rollbacks creates revisions with the manifests of an earlier revision.
type Rollbacks struct {
	revisions *REST
	admitter  admitter
}

// NewRollbacks returns a Rollbacks with the server's admission for creates of revisions; nil admits
// all.
func NewRollbacks(revisions *REST, scheme *runtime.Scheme, admit admission.Interface) *Rollbacks {
	return &Rollbacks{revisions: revisions, admitter: newAdmitter(admit, scheme)}
}

// Create stores a new revision as the endpoint of the resource would for the caller. Admission
// mutates and validates it as a new revision, independent of the source of its content.
func (r *Rollbacks) Create(ctx context.Context, revision *olm.ClusterExtensionRevision, back Rollback, options *metav1.CreateOptions) (*olm.ClusterExtensionRevision, error) {
	ctx, held := withStaged(ctx)
	// A rollback request contains no manifest. So mutating admission added every inline manifest.
	held.seal()
	ctx = context.WithValue(ctx, rollbackKey{}, &back)
	validate, err := r.admitter.admit(ctx, revision, options)
	if err != nil {
		return nil, err
	}
	out, err := r.revisions.Create(ctx, revision, validate, options)
	if err != nil {
		return nil, err
	}
	audit.AddAuditAnnotation(ctx, v1alpha1.RollbackOfAnnotation, back.Of)
	return out.(*olm.ClusterExtensionRevision), nil
}
