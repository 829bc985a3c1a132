package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/penstock-project/penstock/pkg/admission"
	"github.com/penstock-project/penstock/pkg/admission/plugin/approval"
	"github.com/penstock-project/penstock/pkg/admission/plugin/installlevels"
	"github.com/penstock-project/penstock/pkg/admission/plugin/privilege"
	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// addPrivilege gives the admission plugin that checks requesters what it needs. It
// has a client of its own, so that the host's audit log tells its reviews from
// those of every request; and no cache, so that a right that was taken away is
// gone.
func (c *Config) addPrivilege(o *Options) error {
	config := c.Extra.host.configFor("privilege")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for admission plugin %s: %w", privilege.PluginName, err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for admission plugin %s: %w", privilege.PluginName, err)
	}
	reviews, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		WebhookRetryBackoff:       &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3},
	}.New()
	if err != nil {
		return fmt.Errorf("making the authorizer of admission plugin %s: %w", privilege.PluginName, err)
	}
	ours := admission.Initializer{Privilege: privilege.Deps{
		Authorizer: reviews, Kinds: kinds, Roles: hostRoles{client}, Chains: storedChains{&c.Extra},
		Metrics: privilege.NewMetrics(c.Extra.metrics), Target: c.Extra.targetName(),
	}, InstallLevels: installlevels.Deps{Metrics: installlevels.NewMetrics(c.Extra.metrics)}, Approval: approval.Deps{Authorizer: reviews}}
	others := o.Recommended.ExtraAdmissionInitializers
	o.Recommended.ExtraAdmissionInitializers = func(generic *genericapiserver.RecommendedConfig) ([]apiserveradmission.PluginInitializer, error) {
		initializers, err := others(generic)
		return append(initializers, ours), err
	}
	return nil
}

// hostRoles reads roles of the host.
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

// storedChains reads chains. The endpoints are made after admission: they are
// looked for when requests come.
type storedChains struct{ extra *ExtraConfig }

var _ privilege.Chains = storedChains{}

// errNotInstalled is for requests that come before there can be any.
var errNotInstalled = errors.New("the server is not installed yet")

// Revisions implements privilege.Chains.
func (s storedChains) Revisions(ctx context.Context, name string) ([]hub.ClusterExtensionRevision, error) {
	if s.extra.api == nil || s.extra.api.revisions == nil {
		return nil, errNotInstalled
	}
	return s.extra.api.revisions.Revision.Chain(ctx, name)
}

// Contents implements privilege.Chains.
func (s storedChains) Contents(ctx context.Context, revision *hub.ClusterExtensionRevision) ([]manifest.Object, error) {
	if s.extra.api == nil || s.extra.api.revisions == nil {
		return nil, errNotInstalled
	}
	return s.extra.api.revisions.Revision.Contents(ctx, revision)
}

// Inventory implements privilege.Chains.
func (s storedChains) Inventory(ctx context.Context, name string) (chain.Inventory, error) {
	if s.extra.api == nil {
		return chain.Inventory{}, errNotInstalled
	}
	inventory, _, err := s.extra.api.store.Inventories.Load(ctx, name)
	return inventory, err
}
