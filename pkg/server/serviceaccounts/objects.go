package serviceaccounts

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

// Objects are the objects of a job: first what limits its rights, then the rights.
func (a *Accounts) Objects(j Job) []managedobject.Object {
	options := managedobject.ApplyOptions()
	accounts, roles := a.options.Client.CoreV1().ServiceAccounts(a.options.Namespace), a.options.Client.RbacV1()
	role := rbacapply.ClusterRole(j.Name)
	for _, rule := range j.Rules {
		role.WithRules(rbacapply.PolicyRule().WithAPIGroups(rule.APIGroups...).WithResources(rule.Resources...).
			WithResourceNames(rule.ResourceNames...).WithVerbs(rule.Verbs...))
	}
	binding := rbacapply.ClusterRoleBinding(j.Name).
		WithRoleRef(rbacapply.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(j.Name)).
		WithSubjects(rbacapply.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(a.options.Namespace).WithName(j.Name))
	return append(a.limits(j, options),
		managedobject.Object{
			Resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), Namespace: a.options.Namespace, Name: j.Name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return accounts.Apply(ctx, coreapply.ServiceAccount(j.Name, a.options.Namespace), options)
			},
		},
		managedobject.Object{
			Resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles"), Name: j.Name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return roles.ClusterRoles().Apply(ctx, role, options)
			},
		},
		managedobject.Object{
			Resource: rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), Name: j.Name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return roles.ClusterRoleBindings().Apply(ctx, binding, options)
			},
		})
}

// limits are the objects that hold a job to its limit.
func (a *Accounts) limits(j Job, options metav1.ApplyOptions) []managedobject.Object {
	if j.Limit == nil {
		return nil
	}
	policies := a.options.Client.AdmissionregistrationV1()
	return []managedobject.Object{
		{
			Resource: admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"), Name: j.Name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return policies.ValidatingAdmissionPolicies().Apply(ctx, LimitPolicy(j, a.User(j).GetName()), options)
			},
		},
		{
			Resource: admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), Name: j.Name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return policies.ValidatingAdmissionPolicyBindings().Apply(ctx, LimitBinding(j), options)
			},
		},
	}
}

// LimitBinding puts the policy of a job in force.
func LimitBinding(j Job) *admissionapply.ValidatingAdmissionPolicyBindingApplyConfiguration {
	return admissionapply.ValidatingAdmissionPolicyBinding(j.Name).WithSpec(
		admissionapply.ValidatingAdmissionPolicyBindingSpec().WithPolicyName(j.Name).WithValidationActions("Deny"))
}

// LimitPolicy refuses a user every write that the limit of the job does not allow.
//
// matchConstraints are one value to server-side apply: defaults are said, too. Without them,
// whoever applies the same manifest after us, such as `helm upgrade`, is told of a conflict
// with what the API server has added (kubernetes-sigs/structured-merge-diff: atomic fields
// are compared as a whole).
func LimitPolicy(j Job, username string) *admissionapply.ValidatingAdmissionPolicyApplyConfiguration {
	everything := admissionapply.NamedRuleWithOperations().
		WithAPIGroups("*").WithAPIVersions("*").WithResources("*/*").WithOperations("*").WithScope(admissionv1.AllScopes)
	return admissionapply.ValidatingAdmissionPolicy(j.Name).WithSpec(admissionapply.ValidatingAdmissionPolicySpec().
		WithFailurePolicy("Fail").
		WithMatchConstraints(admissionapply.MatchResources().WithResourceRules(everything).WithMatchPolicy(admissionv1.Equivalent).
			WithNamespaceSelector(metaapply.LabelSelector()).WithObjectSelector(metaapply.LabelSelector())).
		WithMatchConditions(admissionapply.MatchCondition().WithName("user").
			WithExpression(fmt.Sprintf("request.userInfo.username == %q", username))).
		WithValidations(admissionapply.Validation().WithExpression(j.Limit.Allows).WithMessage(j.Limit.Message)))
}
