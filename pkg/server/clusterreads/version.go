package clusterreads

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

const versionTimeout = 5 * time.Second

// Version returns the version of a Secret's cluster, for callers who may use that cluster. For an
// empty secret it returns the version of the default target, to any caller.
func (r *Reads) Version(ctx context.Context, caller user.Info, secret string) (clusterversion.Kubernetes, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	config, err := r.configFor(ctx, caller, secret)
	if err != nil {
		return clusterversion.Kubernetes{}, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return clusterversion.Kubernetes{}, fmt.Errorf("making a client for the version of a cluster: %w", err)
	}
	answer, err := client.ServerVersionWithContext(ctx)
	if err != nil {
		return clusterversion.Kubernetes{}, fmt.Errorf("reading the version of the cluster: %w", err)
	}
	return clusterversion.ParseKubernetes(clusterversion.Effective(answer))
}

// configFor returns the client configuration for a cluster that a caller may use.
func (r *Reads) configFor(ctx context.Context, caller user.Info, secret string) (*rest.Config, error) {
	if secret == "" {
		return r.Target.ConfigFor(serviceaccounts.Reader(), r.Accounts), nil
	}
	switch allowed, err := authz.Use(secret).Has(ctx, r.Authorizer, caller); {
	case err != nil:
		return nil, fmt.Errorf("asking what you may do: %w", err)
	case !allowed:
		return nil, fmt.Errorf("you cannot use target %s", secret)
	}
	client, err := r.TargetClients.to(ctx, secret)
	if err != nil {
		return nil, err
	}
	return client.config, nil
}
