package initializers

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics"

	"github.com/penstock-project/penstock/pkg/admission"
	"github.com/penstock-project/penstock/pkg/admission/plugin/installlevels"
	"github.com/penstock-project/penstock/pkg/admission/plugin/privilege"
	"github.com/penstock-project/penstock/pkg/server/host"
)

// Checks has the dependencies of our plugins.
type Checks struct {
	Host *host.Host
	// Chains reads chains during requests.
	Chains privilege.Chains
	// Target names the target that requesters need the right to use; empty for the host.
	Target  string
	Metrics metrics.KubeRegistry
}

// Initializer returns the initializer of the admission plugins that check requesters. Its own
// client distinguishes their reviews in the host's audit log. Without a cache, a withdrawn right
// takes effect at once.
func (c Checks) Initializer() (apiserveradmission.PluginInitializer, error) {
	config := c.Host.ConfigFor("privilege")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for admission plugin %s: %w", privilege.PluginName, err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for admission plugin %s: %w", privilege.PluginName, err)
	}
	reviews, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		WebhookRetryBackoff:       &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("making the authorizer of admission plugin %s: %w", privilege.PluginName, err)
	}
	return admission.Initializer{
		Privilege: privilege.Deps{
			Authorizer: reviews, Kinds: kinds, Roles: hostRoles{client}, Chains: c.Chains,
			Metrics: privilege.NewMetrics(c.Metrics), Target: c.Target,
		},
		InstallLevels: installlevels.Deps{Metrics: installlevels.NewMetrics(c.Metrics)},
		Authorizer:    reviews,
	}, nil
}

type hostRoles struct{ client kubernetes.Interface }

var _ privilege.Roles = hostRoles{}

// Role implements privilege.Roles.
func (r hostRoles) Role(ctx context.Context, kind, namespace, name string) (*privilege.Role, error) {
	found := &privilege.Role{}
	var err error
	switch kind {
	case "ClusterRole":
		var role *rbacv1.ClusterRole
		if role, err = r.client.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{}); err == nil {
			found.Rules, found.Aggregated = role.Rules, role.AggregationRule != nil
		}
	case "Role":
		var role *rbacv1.Role
		if role, err = r.client.RbacV1().Roles(namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			found.Rules = role.Rules
		}
	default:
		return nil, nil
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}
