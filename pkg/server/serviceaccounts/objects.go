package serviceaccounts

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

// Objects returns the objects that give a job its identity and its rights. Apply the objects of
// Limits first.
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
	return []managedobject.Object{
		{
			Resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), Namespace: a.options.Namespace, Name: j.Name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return accounts.Apply(ctx, coreapply.ServiceAccount(j.Name, a.options.Namespace), options)
			},
		},
		{
			Resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles"), Name: j.Name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return roles.ClusterRoles().Apply(ctx, role, options)
			},
		},
		{
			Resource: rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), Name: j.Name,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return roles.ClusterRoleBindings().Apply(ctx, binding, options)
			},
		},
	}
}

// LimitsName is the name of the policy that enforces the limits of jobs, and of its binding.
const LimitsName = "penstock-identities"

// Limits returns the objects that enforce the limits of all jobs. Apply them before any job gets
// its rights.
func (a *Accounts) Limits() []managedobject.Object {
	options, policies := managedobject.ApplyOptions(), a.options.Client.AdmissionregistrationV1()
	return []managedobject.Object{
		{
			Resource: admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"), Name: LimitsName,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return policies.ValidatingAdmissionPolicies().Apply(ctx, LimitPolicy(a.options.Namespace), options)
			},
		},
		{
			Resource: admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), Name: LimitsName,
			Apply: func(ctx context.Context) (metav1.Object, error) {
				return policies.ValidatingAdmissionPolicyBindings().Apply(ctx, LimitBinding(), options)
			},
		},
	}
}

// LimitBinding returns the binding that puts the policy into force.
func LimitBinding() *admissionapply.ValidatingAdmissionPolicyBindingApplyConfiguration {
	return admissionapply.ValidatingAdmissionPolicyBinding(LimitsName).WithSpec(
		admissionapply.ValidatingAdmissionPolicyBindingSpec().WithPolicyName(LimitsName).WithValidationActions("Deny"))
}

// LimitPolicy returns the policy that refuses each write beyond the limit of a job whose
// ServiceAccount is in the namespace.
//
// All jobs share one policy: its match conditions select refused writes, and each validation has
// the message of one job. kube-apiserver converts the old and the new object to CEL values for each
// policy that matches a write. It repeats that for conditions, validations, messages and audit
// annotations (newActivation in k8s.io/apiserver/pkg/admission/plugin/cel). Every write in the
// cluster matches these rules, so a single policy saves conversions.
//
// Server-side apply treats matchConstraints as one value, so the policy sets its defaults, too.
// Otherwise a user who later applies the same manifest, such as with `helm upgrade`, gets a
// conflict about the API server's defaults. (kubernetes-sigs/structured-merge-diff compares atomic
// fields as a whole.)
func LimitPolicy(namespace string) *admissionapply.ValidatingAdmissionPolicyApplyConfiguration {
	everything := admissionapply.NamedRuleWithOperations().
		WithAPIGroups("*").WithAPIVersions("*").WithResources("*/*").WithOperations("*").WithScope(admissionv1.AllScopes)
	var users, allowed []string
	var validations []*admissionapply.ValidationApplyConfiguration
	for _, j := range Jobs() {
		if j.Limit == nil {
			continue
		}
		user := strconv.Quote(serviceaccount.MakeUsername(namespace, j.Name))
		users = append(users, user)
		allowed = append(allowed, fmt.Sprintf("request.userInfo.username == %s && (%s)", user, j.Limit.Allows))
		validations = append(validations, admissionapply.Validation().
			WithExpression("request.userInfo.username != "+user).WithMessage(j.Limit.Message))
	}
	return admissionapply.ValidatingAdmissionPolicy(LimitsName).WithSpec(admissionapply.ValidatingAdmissionPolicySpec().
		WithFailurePolicy("Fail").
		WithMatchConstraints(admissionapply.MatchResources().WithResourceRules(everything).WithMatchPolicy(admissionv1.Equivalent).
			WithNamespaceSelector(metaapply.LabelSelector()).WithObjectSelector(metaapply.LabelSelector())).
		WithMatchConditions(
			admissionapply.MatchCondition().WithName("user").WithExpression(fmt.Sprintf("request.userInfo.username in [%s]", strings.Join(users, ", "))),
			admissionapply.MatchCondition().WithName("beyond-its-limit").WithExpression(fmt.Sprintf("!(%s)", strings.Join(allowed, " || "))),
		).
		WithValidations(validations...))
}
