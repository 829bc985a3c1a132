package serviceaccounts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

const (
	// profilePrefix begins the names of all objects of a user-defined profile.
	profilePrefix = "penstock-profile-"
	// ProfileLabel is the label that names the profile's definition on these objects.
	ProfileLabel = "hco.kubevirt.io/profile-definition"
)

// Profiles manages the identities of user-defined profiles. Each has a ServiceAccount with exactly
// the rights that its definition declares. The engine writes them, because it may grant rights that
// it does not have. Admission plugin ProfileAccess checks that the author of a definition has these
// rights.
type Profiles struct {
	accounts *Accounts

	mu     sync.Mutex
	client kubernetes.Interface
	self   *rbacapply.SubjectApplyConfiguration
}

// Profiles returns the identities of user-defined profiles. It sends no request.
func (a *Accounts) Profiles() *Profiles { return &Profiles{accounts: a} }

func profileJob(name string) Job { return Job{Name: profilePrefix + name} }

// ConfigFor returns a client configuration for the plans of a profile. It sends no request.
func (p *Profiles) ConfigFor(name string) *rest.Config {
	return p.accounts.ConfigFor(profileJob(name))
}

// Account returns the ServiceAccount of a profile as namespace/name.
func (p *Profiles) Account(name string) string {
	return p.accounts.options.Namespace + "/" + profilePrefix + name
}

// prepare creates the client, and finds the user that requests tokens.
func (p *Profiles) prepare(ctx context.Context) (kubernetes.Interface, *rbacapply.SubjectApplyConfiguration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		client, err := kubernetes.NewForConfig(p.accounts.ConfigFor(Engine()))
		if err != nil {
			return nil, nil, fmt.Errorf("making a client for the identities of profiles: %w", err)
		}
		p.client = client
	}
	if p.self == nil {
		found, err := p.accounts.options.Client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return nil, nil, fmt.Errorf("asking the host who this process is: %w", err)
		}
		p.self = subjectOf(found.Status.UserInfo.Username)
	}
	return p.client, p.self, nil
}

func subjectOf(username string) *rbacapply.SubjectApplyConfiguration {
	if namespace, name, err := serviceaccount.SplitUsername(username); err == nil {
		return rbacapply.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(namespace).WithName(name)
	}
	return rbacapply.Subject().WithKind(rbacv1.UserKind).WithAPIGroup(rbacv1.GroupName).WithName(username)
}

// Grant gives the identity of a profile exactly the given rights, and returns when the host
// enforces them.
func (p *Profiles) Grant(ctx context.Context, name string, rules []rbacv1.PolicyRule) error {
	client, self, err := p.prepare(ctx)
	if err != nil {
		return err
	}
	job, namespace, options := profileJob(name), p.accounts.options.Namespace, managedobject.ApplyOptions()
	job.Rules = rules
	labels := map[string]string{ProfileLabel: name}
	role := rbacapply.ClusterRole(job.Name).WithLabels(labels)
	for _, rule := range rules {
		role.WithRules(rbacapply.PolicyRule().WithAPIGroups(rule.APIGroups...).WithResources(rule.Resources...).WithResourceNames(rule.ResourceNames...).WithVerbs(rule.Verbs...))
	}
	account := rbacapply.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(namespace).WithName(job.Name)
	token := rbacapply.PolicyRule().WithAPIGroups("").WithResources("serviceaccounts/token").WithResourceNames(job.Name).WithVerbs("create")
	for _, write := range []func() error{
		func() error {
			_, err := client.CoreV1().ServiceAccounts(namespace).Apply(ctx, coreapply.ServiceAccount(job.Name, namespace).WithLabels(labels), options)
			return err
		},
		func() error {
			_, err := client.RbacV1().ClusterRoles().Apply(ctx, role, options)
			return err
		},
		func() error {
			_, err := client.RbacV1().ClusterRoleBindings().Apply(ctx, rbacapply.ClusterRoleBinding(job.Name).WithLabels(labels).WithSubjects(account).
				WithRoleRef(rbacapply.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(job.Name)), options)
			return err
		},
		// This role lets this process request tokens of this ServiceAccount, and of no other.
		func() error {
			_, err := client.RbacV1().Roles(namespace).Apply(ctx, rbacapply.Role(job.Name, namespace).WithLabels(labels).WithRules(token), options)
			return err
		},
		func() error {
			_, err := client.RbacV1().RoleBindings(namespace).Apply(ctx, rbacapply.RoleBinding(job.Name, namespace).WithLabels(labels).WithSubjects(self).
				WithRoleRef(rbacapply.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(job.Name)), options)
			return err
		},
	} {
		if err := write(); err != nil {
			return fmt.Errorf("giving profile %s its rights: %w", name, err)
		}
	}
	if err := p.awaitToken(ctx, job); err != nil {
		return err
	}
	if len(rules) > 1 {
		job.Rules = rules[1:] // the first rule is about single objects
		p.accounts.await(ctx, job)
	}
	return nil
}

// awaitToken returns when the host lets this process request tokens of a profile. An earlier
// request would be refused.
func (p *Profiles) awaitToken(ctx context.Context, job Job) error {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	asked := authz.Right{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: p.accounts.options.Namespace, Name: job.Name}
	for {
		allowed, err := accessreview.Allowed(ctx, p.accounts.options.Client, asked)
		if err != nil || allowed {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until the host lets this process %s: %w", asked, ctx.Err())
		case <-time.After(rightsPoll):
		}
	}
}

// Withdraw removes the identity of a profile with all its rights.
func (p *Profiles) Withdraw(ctx context.Context, name string) error {
	client, _, err := p.prepare(ctx)
	if err != nil {
		return err
	}
	job, namespace := profilePrefix+name, p.accounts.options.Namespace
	for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{
		client.RbacV1().ClusterRoleBindings().Delete, client.RbacV1().ClusterRoles().Delete,
		client.CoreV1().ServiceAccounts(namespace).Delete, client.RbacV1().RoleBindings(namespace).Delete, client.RbacV1().Roles(namespace).Delete,
	} {
		if err := remove(ctx, job, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("withdrawing the rights of profile %s: %w", name, err)
		}
	}
	return nil
}

// OfProfile reports whether an object grants rights to the identity of a profile: it has the
// identity's name and the label. An object with only the label has another owner.
func OfProfile(object metav1.Object) bool {
	name, ours := strings.CutPrefix(object.GetName(), profilePrefix)
	return ours && name != "" && object.GetLabels()[ProfileLabel] == name
}

// Granted returns the profiles that have rights, sorted.
func (p *Profiles) Granted(ctx context.Context) ([]string, error) {
	client, _, err := p.prepare(ctx)
	if err != nil {
		return nil, err
	}
	found, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{LabelSelector: ProfileLabel})
	if err != nil {
		return nil, fmt.Errorf("listing the rights of profiles: %w", err)
	}
	var names []string
	for _, role := range found.Items {
		if OfProfile(&role) {
			names = append(names, role.Labels[ProfileLabel])
		}
	}
	slices.Sort(names)
	return names, nil
}
