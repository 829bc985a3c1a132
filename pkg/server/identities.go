package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	// tokenLifetime of a job's token. Nobody can take it back but by deleting its
	// ServiceAccount, so it is short.
	tokenLifetime = time.Hour
	// tokenTimeout bounds the request for one.
	tokenTimeout = 5 * time.Second
	// rightsTimeout bounds the wait for the host to know of rights that were given,
	// and rightsPoll is how often it is asked.
	rightsTimeout = 10 * time.Second
	rightsPoll    = 50 * time.Millisecond
)

// job is something that this process does in the host in a name of its own, so
// that its rights, its part of the audit log and its priority are its own too.
type job struct {
	// name of its ServiceAccount, and of the ClusterRole and the
	// ClusterRoleBinding that give it its rights.
	name string
	// rules are those rights.
	rules []rbacv1.PolicyRule
	// limit is what the host's admission refuses the job whatever its rights are; nil
	// for nothing.
	limit *limit
}

// limit says by policy what rights cannot say: that they are for dry-runs, or not for
// subresources.
type limit struct {
	// allows is a CEL expression that holds for what the job may do.
	allows string
	// message is for everything else.
	message string
}

// whole is true for requests to objects, and not to their subresources: some of those
// act at once, and connections have a right to all that is behind them.
const whole = "(!has(request.subResource) || request.subResource == '') && request.operation != 'CONNECT'"

// jobs are all that have an identity of their own.
func jobs() []job { return []job{engine(), reader(), executor()} }

// identities are the names under which jobs are done: ServiceAccounts in the
// namespace of this process, with tokens that are asked for when they are needed,
// renewed while they are used, and kept in memory only.
type identities struct {
	client    kubernetes.Interface
	host      *host
	namespace string
	now       func() time.Time

	// there is closed when the jobs have what they need, as far as this process is
	// to see to it.
	there   chan struct{}
	ensured sync.Once
}

// newIdentities returns the identities of a process that creates them itself, or
// that finds them there.
func newIdentities(host *host, namespace string, creates bool) (*identities, error) {
	client, err := kubernetes.NewForConfig(host.configFor("identities"))
	if err != nil {
		return nil, fmt.Errorf("making a client for the identities of jobs: %w", err)
	}
	i := &identities{client: client, host: host, namespace: namespace, now: time.Now, there: make(chan struct{})}
	if !creates {
		i.ensured.Do(func() { close(i.there) })
	}
	return i, nil
}

// wait returns when the jobs have what they need, or when ctx ends.
func (i *identities) wait(ctx context.Context) {
	select {
	case <-i.there:
	case <-ctx.Done():
	}
}

// user is who the host takes a job for.
func (i *identities) user(j job) user.Info {
	return &user.DefaultInfo{
		Name:   serviceaccount.MakeUsername(i.namespace, j.name),
		Groups: append(serviceaccount.MakeGroupNames(i.namespace), user.AllAuthenticated),
	}
}

// remedy says what there must be for a job.
func (i *identities) remedy(j job) string {
	return fmt.Sprintf("start penstock with --register, or create ServiceAccount %[1]s/%[2]s, ClusterRole %[2]s and ClusterRoleBinding %[2]s as in docs/reference/identities.md",
		i.namespace, j.name)
}

// config returns a client configuration for a job, which the host's audit log knows
// as a part of this process too. It sends no request; what keeps
// the job from having a token is the error of whatever is asked with it, a
// ServiceUnavailable that says what to do.
func (i *identities) config(j job) *rest.Config {
	config := rest.AnonymousClientConfig(i.host.config)
	config.UserAgent = i.host.userAgent(j.name)
	tokens := &tokens{now: i.now, fetch: func(ctx context.Context) (credential, error) { return i.token(ctx, j) }}
	config.Wrap(tokens.wrap)
	return config
}

// token asks for one.
func (i *identities) token(ctx context.Context, j job) (credential, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	made, err := i.client.CoreV1().ServiceAccounts(i.namespace).CreateToken(ctx, j.name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime / time.Second))},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return credential{}, apierrors.NewServiceUnavailable(fmt.Sprintf("there is no ServiceAccount %s/%s: %s", i.namespace, j.name, i.remedy(j)))
	case apierrors.IsForbidden(err):
		return credential{}, apierrors.NewServiceUnavailable(fmt.Sprintf(
			"penstock itself may not create serviceaccounts/token of %s/%s (see docs/reference/identities.md)", i.namespace, j.name))
	case err != nil:
		return credential{}, fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", i.namespace, j.name, err)
	}
	return credential{value: made.Status.Token, expires: made.Status.ExpirationTimestamp.Time}, nil
}

// ensureAll creates or repairs what jobs need. What this process may not do is
// said in the log and left to a person: everything but that job goes on. Any other
// error may go away by itself.
func (i *identities) ensureAll(ctx context.Context, jobs []job) error {
	for _, j := range jobs {
		err := i.ensure(ctx, j)
		if apierrors.IsForbidden(err) {
			klog.FromContext(ctx).Error(err, "A job of this process goes without an identity", "job", j.name, "remedy", i.remedy(j))
			continue
		}
		if err != nil {
			return err
		}
		i.await(ctx, j)
	}
	i.ensured.Do(func() { close(i.there) })
	return nil
}

// await returns when the host knows of the rights of a job, which it learns from a
// watch. What begins too early would be told that it may not, and come back later
// each time.
func (i *identities) await(ctx context.Context, j job) {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(i.config(j))
	for err == nil {
		first := j.rules[0]
		allowed := false
		allowed, err = mayI(ctx, client, access{verb: first.Verbs[0], resource: schema.GroupVersionResource{
			Group: first.APIGroups[0], Version: "*", Resource: first.Resources[0]}})
		if allowed {
			return
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(rightsPoll):
		}
	}
	klog.FromContext(ctx).Error(err, "It is not known whether the host knows the rights of a job", "job", j.name)
}

// ensure applies the objects of a job. What is as it should be is not changed.
func (i *identities) ensure(ctx context.Context, j job) error {
	for _, p := range i.pieces(j) {
		_, err := p.apply(ctx)
		if apierrors.IsNotFound(err) && p.resource.Group == admissionv1.GroupName {
			klog.FromContext(ctx).Info("The host has no ValidatingAdmissionPolicies; nothing but its own manners keeps a job within its limit", "job", j.name)
			continue
		}
		if err != nil {
			return fmt.Errorf("applying %s: %w", p, err)
		}
	}
	return nil
}

// pieces are the objects of a job: first what limits its rights, then the rights.
func (i *identities) pieces(j job) []piece {
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	accounts, roles := i.client.CoreV1().ServiceAccounts(i.namespace), i.client.RbacV1()
	role := rbacapply.ClusterRole(j.name)
	for _, rule := range j.rules {
		role.WithRules(rbacapply.PolicyRule().WithAPIGroups(rule.APIGroups...).WithResources(rule.Resources...).
			WithResourceNames(rule.ResourceNames...).WithVerbs(rule.Verbs...))
	}
	binding := rbacapply.ClusterRoleBinding(j.name).
		WithRoleRef(rbacapply.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(j.name)).
		WithSubjects(rbacapply.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(i.namespace).WithName(j.name))
	return append(i.limits(j, options),
		piece{
			resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), namespace: i.namespace, name: j.name,
			apply: func(ctx context.Context) (metav1.Object, error) {
				return accounts.Apply(ctx, coreapply.ServiceAccount(j.name, i.namespace), options)
			},
		},
		piece{
			resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles"), name: j.name,
			apply: func(ctx context.Context) (metav1.Object, error) {
				return roles.ClusterRoles().Apply(ctx, role, options)
			},
		},
		piece{
			resource: rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), name: j.name,
			apply: func(ctx context.Context) (metav1.Object, error) {
				return roles.ClusterRoleBindings().Apply(ctx, binding, options)
			},
		})
}

// limits are the objects that hold a job to its limit.
func (i *identities) limits(j job, options metav1.ApplyOptions) []piece {
	if j.limit == nil {
		return nil
	}
	policies := i.client.AdmissionregistrationV1()
	return []piece{
		{
			resource: admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"), name: j.name,
			apply: func(ctx context.Context) (metav1.Object, error) {
				return policies.ValidatingAdmissionPolicies().Apply(ctx, limitPolicy(j, i.user(j).GetName()), options)
			},
		},
		{
			resource: admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), name: j.name,
			apply: func(ctx context.Context) (metav1.Object, error) {
				return policies.ValidatingAdmissionPolicyBindings().Apply(ctx, limitBinding(j), options)
			},
		},
	}
}

func limitBinding(j job) *admissionapply.ValidatingAdmissionPolicyBindingApplyConfiguration {
	return admissionapply.ValidatingAdmissionPolicyBinding(j.name).WithSpec(
		admissionapply.ValidatingAdmissionPolicyBindingSpec().WithPolicyName(j.name).WithValidationActions("Deny"))
}

// limitPolicy refuses a user every write that the limit of the job does not allow.
func limitPolicy(j job, username string) *admissionapply.ValidatingAdmissionPolicyApplyConfiguration {
	everything := admissionapply.NamedRuleWithOperations().
		WithAPIGroups("*").WithAPIVersions("*").WithResources("*/*").WithOperations("*")
	return admissionapply.ValidatingAdmissionPolicy(j.name).WithSpec(admissionapply.ValidatingAdmissionPolicySpec().
		WithFailurePolicy("Fail").
		WithMatchConstraints(admissionapply.MatchResources().WithResourceRules(everything)).
		WithMatchConditions(admissionapply.MatchCondition().WithName("user").
			WithExpression(fmt.Sprintf("request.userInfo.username == %q", username))).
		WithValidations(admissionapply.Validation().WithExpression(j.limit.allows).WithMessage(j.limit.message)))
}
