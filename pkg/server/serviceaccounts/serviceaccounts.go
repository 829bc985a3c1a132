// Package serviceaccounts gives each job of this process an identity in the host: a ServiceAccount
// with the rights of the job, a policy that limits it, and tokens in memory.
// docs/reference/identities.md lists the jobs and their rights.
package serviceaccounts

import (
	"context"
	"fmt"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

const (
	// tokenLifetime is the life of a job's token. It is short, because only the deletion of the
	// ServiceAccount revokes a token.
	tokenLifetime = time.Hour
	tokenTimeout  = 5 * time.Second
	// rightsTimeout bounds the wait until the host knows new rights. rightsPoll is the interval of
	// checks.
	rightsTimeout = 10 * time.Second
	rightsPoll    = 50 * time.Millisecond
)

// Options holds the settings of Accounts.
type Options struct {
	// Client writes ServiceAccounts and their rights, and requests tokens.
	Client kubernetes.Interface
	// Config is the client configuration for the host. Jobs do not use its credentials.
	Config *rest.Config
	// UserAgent returns the user agent of a part of this process, for the host's audit log.
	UserAgent func(part string) string
	// Namespace is the namespace of the ServiceAccounts.
	Namespace string
	// Create is true if this process creates the objects that jobs need (see Ensure). Otherwise an
	// administrator has created them.
	Create bool
}

// Accounts are the identities of jobs: ServiceAccounts in the namespace of this process. Their
// tokens are requested on first use, renewed while in use, and kept only in memory.
type Accounts struct {
	options Options
	now     func() time.Time

	// ready is closed after Ensure, when the jobs have their identities. If an administrator
	// creates these, it is closed at once.
	ready   chan struct{}
	ensured sync.Once
}

// New returns the identities. It sends no request.
func New(options Options) *Accounts {
	a := &Accounts{options: options, now: time.Now, ready: make(chan struct{})}
	if !options.Create {
		a.ensured.Do(func() { close(a.ready) })
	}
	return a
}

// Wait returns when the identities of jobs exist, or when ctx ends.
func (a *Accounts) Wait(ctx context.Context) {
	select {
	case <-a.ready:
	case <-ctx.Done():
	}
}

// User returns the user and groups of a job's requests.
func (a *Accounts) User(j Job) user.Info {
	return &user.DefaultInfo{
		Name:   serviceaccount.MakeUsername(a.options.Namespace, j.Name),
		Groups: append(serviceaccount.MakeGroupNames(a.options.Namespace), user.AllAuthenticated),
	}
}

// Remedy returns the steps that give a job its identity, for messages.
func (a *Accounts) Remedy(j Job) string {
	return fmt.Sprintf("start penstock with --register, or create ServiceAccount %[1]s/%[2]s, ClusterRole %[2]s and ClusterRoleBinding %[2]s as in docs/reference/identities.md",
		a.options.Namespace, j.Name)
}

// ConfigFor returns a client configuration for a job. The user agent shows the job in the host's
// audit log. ConfigFor sends no request. Without a token, each request with the configuration fails
// with a ServiceUnavailable error that explains the remedy.
func (a *Accounts) ConfigFor(j Job) *rest.Config {
	return a.configBy(j.Name, func(ctx context.Context) (credential, error) { return a.token(ctx, j) })
}

// ConfigForAccount returns a client configuration for a user's ServiceAccount. Penstock needs the
// right to request its tokens. ConfigForAccount sends no request.
func (a *Accounts) ConfigForAccount(namespace, name string) *rest.Config {
	return a.configBy(namespace+"/"+name, func(ctx context.Context) (credential, error) {
		made, err := a.ask(ctx, namespace, name)
		switch {
		case apierrors.IsNotFound(err):
			return credential{}, apierrors.NewServiceUnavailable(fmt.Sprintf("there is no ServiceAccount %s/%s", namespace, name))
		case apierrors.IsForbidden(err):
			return credential{}, apierrors.NewServiceUnavailable(fmt.Sprintf(
				"penstock itself cannot create serviceaccounts/token of %s/%s: allow it with a Role and a RoleBinding in namespace %s (see docs/how-to/make-a-kind-of-a-chart.md)", namespace, name, namespace))
		}
		return made, err
	})
}

func (a *Accounts) configBy(part string, fetch func(context.Context) (credential, error)) *rest.Config {
	config := rest.AnonymousClientConfig(a.options.Config)
	config.UserAgent = a.options.UserAgent(part)
	tokens := &tokens{now: a.now, fetch: fetch}
	config.Wrap(tokens.wrap)
	return config
}

func (a *Accounts) token(ctx context.Context, j Job) (credential, error) {
	made, err := a.ask(ctx, a.options.Namespace, j.Name)
	switch {
	case apierrors.IsNotFound(err):
		return credential{}, apierrors.NewServiceUnavailable(fmt.Sprintf("there is no ServiceAccount %s/%s: %s", a.options.Namespace, j.Name, a.Remedy(j)))
	case apierrors.IsForbidden(err):
		return credential{}, apierrors.NewServiceUnavailable(fmt.Sprintf(
			"penstock itself cannot create serviceaccounts/token of %s/%s (see docs/reference/identities.md)", a.options.Namespace, j.Name))
	}
	return made, err
}

func (a *Accounts) ask(ctx context.Context, namespace, name string) (credential, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	made, err := a.options.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime / time.Second))},
	}, metav1.CreateOptions{})
	if err != nil {
		return credential{}, fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return credential{value: made.Status.Token, expires: made.Status.ExpirationTimestamp.Time}, nil
}

// Ensure creates or repairs the objects that jobs need, and returns when the host knows them. It
// logs each right that an administrator must add; only the job that needs the right does not work.
// Other errors may be temporary: call Ensure again.
func (a *Accounts) Ensure(ctx context.Context, jobs []Job) error {
	// Policies come before the rights that they limit: without its policy, a job gets no rights.
	unlimited := a.apply(ctx, a.Limits())
	for _, j := range jobs {
		err := unlimited
		if err == nil || j.Limit == nil {
			err = a.apply(ctx, a.Objects(j))
		}
		if apierrors.IsForbidden(err) {
			klog.FromContext(ctx).Error(err, "A job of this process has no identity", "job", j.Name, "remedy", a.Remedy(j))
			continue
		}
		if err != nil {
			return err
		}
		a.await(ctx, j)
	}
	a.ensured.Do(func() { close(a.ready) })
	return nil
}

// await returns when the host knows the rights of a job, which it learns from a watch. A job that
// begins earlier would be refused, and its retries would become ever rarer.
func (a *Accounts) await(ctx context.Context, j Job) {
	if len(j.Rules) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(a.ConfigFor(j))
	for err == nil {
		first := j.Rules[0]
		allowed := false
		allowed, err = accessreview.Allowed(ctx, client, authz.Right{Verb: first.Verbs[0], Group: first.APIGroups[0], Resource: first.Resources[0]})
		if allowed {
			return
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(rightsPoll):
		}
	}
	klog.FromContext(ctx).Error(err, "It is not known whether the host already grants the rights of a job", "job", j.Name)
}

// apply writes objects. Correct objects stay unchanged.
func (a *Accounts) apply(ctx context.Context, objects []managedobject.Object) error {
	for _, object := range objects {
		_, err := object.Apply(ctx)
		if apierrors.IsNotFound(err) && object.Resource.Group == admissionv1.GroupName {
			klog.FromContext(ctx).Info("The host has no ValidatingAdmissionPolicies, so it does not enforce the limits of jobs")
			continue
		}
		if err != nil {
			return fmt.Errorf("applying %s: %w", object, err)
		}
	}
	return nil
}
