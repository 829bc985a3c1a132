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

// Owners knows the objects whose controllers create revisions.
type Owners interface {
	// Generation returns metadata.generation of the owner of a revision as it is
	// now. One that does not exist is an error.
	Generation(ctx context.Context, owner metav1.OwnerReference) (int64, error)
}

// Rollback makes a create a rollback.
type Rollback struct {
	// Of is the revision whose content comes back.
	Of string
	// Holds is true if the chain's owner is to make no revision until its generation is above
	// OwnerGeneration, or until it is released when that is 0.
	Holds           bool
	OwnerGeneration int64
}

type rollbackKey struct{}

// rollbackFrom returns the rollback that a create is, or nil.
func rollbackFrom(ctx context.Context) *Rollback {
	back, _ := ctx.Value(rollbackKey{}).(*Rollback)
	return back
}

// Rollbacks creates revisions that have the manifests of others of their chain.
type Rollbacks struct {
	revisions *REST
	admitter  admitter
}

// NewRollbacks takes the server's admission, for creates of revisions; nil admits all.
func NewRollbacks(revisions *REST, scheme *runtime.Scheme, admit admission.Interface) *Rollbacks {
	return &Rollbacks{revisions: revisions, admitter: newAdmitter(admit, scheme)}
}

// Create stores a new revision as the endpoint of the resource would for the caller: it
// is mutated and validated as one, and not as the rollback that it comes from.
func (r *Rollbacks) Create(ctx context.Context, revision *olm.ClusterExtensionRevision, back Rollback, options *metav1.CreateOptions) (*olm.ClusterExtensionRevision, error) {
	ctx, held := withStaged(ctx)
	// No manifest comes with a rollback, so whatever turns up inline was put in
	// by mutating admission.
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
