package clusterextensionrevision

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// admitter admits creates of revisions that arrive at other endpoints. It admits them like the
// endpoint of the main resource, on behalf of the caller.
type admitter struct {
	admission  admission.Interface
	interfaces admission.ObjectInterfaces
}

func newAdmitter(admit admission.Interface, scheme *runtime.Scheme) admitter {
	return admitter{admission: admit, interfaces: admission.NewObjectInterfacesFromScheme(scheme)}
}

// admit lets admission mutate a revision, and returns the validation of admission.
func (a admitter) admit(ctx context.Context, revision *olm.ClusterExtensionRevision, options *metav1.CreateOptions) (rest.ValidateObjectFunc, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	attributes := admission.NewAttributesRecord(revision, nil, v1alpha1.SchemeGroupVersion.WithKind("ClusterExtensionRevision"), "", revision.Name,
		v1alpha1.SchemeGroupVersion.WithResource(resource), "", admission.Create, options, dryrun.IsDryRun(options.DryRun), caller)
	audited := admission.WithAudit(a.admission)
	if mutator, ok := audited.(admission.MutationInterface); ok && mutator.Handles(admission.Create) {
		if err := mutator.Admit(ctx, attributes, a.interfaces); err != nil {
			return nil, err
		}
	}
	return rest.AdmissionToValidateObjectFunc(audited, attributes, a.interfaces), nil
}
