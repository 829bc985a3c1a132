package registration

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/klog/v2"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

// ensureFreezePolicy makes the host verify the author of a freeze. A ConfigMap does not record its
// author: clients choose their names in managedFields themselves. So users write their own name
// into it. The host knows the user, and refuses any other name.
func (r *Registration) ensureFreezePolicy(ctx context.Context) error {
	for _, object := range r.freezeObjects() {
		_, err := object.Apply(ctx)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			klog.FromContext(ctx).Info("The author of a freeze is not verified", "reason", err.Error())
			return nil
		}
		if err != nil {
			return fmt.Errorf("applying %s: %w", object, err)
		}
	}
	return nil
}

func (r *Registration) freezeObjects() []managedobject.Object {
	options := managedobject.ApplyOptions()
	policies, name := r.options.Core.AdmissionregistrationV1(), olmv1alpha1.FreezeConfigMap
	return []managedobject.Object{
		{
			Resource: admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"), Name: name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return policies.ValidatingAdmissionPolicies().Apply(ctx, FreezePolicy(r.options.Namespace), options)
			},
		},
		{
			Resource: admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), Name: name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return policies.ValidatingAdmissionPolicyBindings().Apply(ctx, FreezeBinding(), options)
			},
		},
	}
}

// FreezeBinding returns the binding that puts FreezePolicy into force.
func FreezeBinding() *admissionapply.ValidatingAdmissionPolicyBindingApplyConfiguration {
	return admissionapply.ValidatingAdmissionPolicyBinding(olmv1alpha1.FreezeConfigMap).WithSpec(
		admissionapply.ValidatingAdmissionPolicyBindingSpec().WithPolicyName(olmv1alpha1.FreezeConfigMap).WithValidationActions("Deny"))
}

// FreezePolicy returns the policy that the recorded author of a freeze is the user who wrote it. It
// covers only the data of one ConfigMap in the namespace: a user who adds a label does not become
// the author. It sets the defaults of matchConstraints for the reason given at
// serviceaccounts.LimitPolicy.
func FreezePolicy(namespace string) *admissionapply.ValidatingAdmissionPolicyApplyConfiguration {
	configMaps := admissionapply.NamedRuleWithOperations().
		WithAPIGroups("").WithAPIVersions("v1").WithResources("configmaps").WithOperations("CREATE", "UPDATE").WithScope(admissionv1.AllScopes)
	return admissionapply.ValidatingAdmissionPolicy(olmv1alpha1.FreezeConfigMap).WithSpec(admissionapply.ValidatingAdmissionPolicySpec().
		WithFailurePolicy("Fail").
		WithMatchConstraints(admissionapply.MatchResources().WithResourceRules(configMaps).WithMatchPolicy(admissionv1.Equivalent).WithObjectSelector(metaapply.LabelSelector()).
			WithNamespaceSelector(metaapply.LabelSelector().WithMatchLabels(map[string]string{"kubernetes.io/metadata.name": namespace}))).
		WithMatchConditions(
			admissionapply.MatchCondition().WithName("name").
				WithExpression(fmt.Sprintf("object.metadata.name == %q", olmv1alpha1.FreezeConfigMap)),
			admissionapply.MatchCondition().WithName("content").
				WithExpression("request.operation == 'CREATE' || !has(object.data) || !has(oldObject.data) || object.data != oldObject.data")).
		WithValidations(
			admissionapply.Validation().
				WithExpression("has(object.data) && 'author' in object.data && object.data['author'] == request.userInfo.username").
				WithMessageExpression("'data.author must be your own name: --from-literal=author=' + request.userInfo.username"),
			admissionapply.Validation().
				WithExpression("has(object.data) && 'reason' in object.data && object.data['reason'].size() > 0").
				WithMessage("data.reason must say why: --from-literal=reason=...")))
}
