package clusterreads

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff/live"
	"github.com/penstock-project/penstock/pkg/rollout/kubeconfig"
	"github.com/penstock-project/penstock/pkg/server/host"
	"github.com/penstock-project/penstock/pkg/target"
)

const maxTargetClients = 16

// TargetClients holds the clients of Secrets' clusters, for requests. Any replica answers requests,
// while only the leader watches Secrets. Each request reads its Secret again, so a deleted or
// changed Secret takes effect at once.
type TargetClients struct {
	client    kubernetes.Interface
	namespace string
	visitor   target.Visitor

	mu    sync.Mutex
	known map[string]*targetClient
}

// targetClient is the client of one state of a Secret.
type targetClient struct {
	version string
	// cluster identifies the cluster (see target.Visitor).
	cluster string
	config  *rest.Config
	link    *kubeconfig.Link

	// live compares revisions with the cluster. The first use creates it.
	once sync.Once
	live *live.Live
	err  error
}

// NewTargetClients returns clients by the Secrets of a namespace of the host. It sends no request.
func NewTargetClients(h *host.Host, namespace string, visitor target.Visitor) (*TargetClients, error) {
	client, err := kubernetes.NewForConfig(h.ConfigFor("targets"))
	if err != nil {
		return nil, fmt.Errorf("making a client for kubeconfigs of targets: %w", err)
	}
	return &TargetClients{client: client, namespace: namespace, visitor: visitor, known: map[string]*targetClient{}}, nil
}

// to returns the client of the cluster of a Secret. If the Secret has changed, it identifies the
// cluster again. It does not claim the cluster.
func (r *TargetClients) to(ctx context.Context, name string) (*targetClient, error) {
	refuse := func(err error) error {
		return &target.UnavailableError{Secret: r.namespace + "/" + name, Why: err}
	}
	secret, err := r.client.CoreV1().Secrets(r.namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, refuse(errors.New("there is no such Secret"))
	case err != nil:
		return nil, refuse(fmt.Errorf("it cannot be read: %w", err))
	}
	version := string(secret.UID) + "/" + secret.ResourceVersion
	r.mu.Lock()
	known := r.known[name]
	r.mu.Unlock()
	if known != nil && known.version == version {
		return known, nil
	}
	config, err := target.Config(secret)
	if err != nil {
		return nil, refuse(err)
	}
	found := &targetClient{version: version, link: kubeconfig.NewLink()}
	if found.cluster, err = r.visitor.Look(ctx, config); err != nil {
		return nil, refuse(err)
	}
	if err := found.link.Lead(config); err != nil {
		return nil, refuse(err)
	}
	found.config = found.link.Config()
	found.config.UserAgent = r.visitor.UserAgent
	r.keep(name, found)
	return found, nil
}

// errReplaced is the error of requests that still use the previous client of a Secret.
var errReplaced = errors.New("its kubeconfig was replaced, or not used for long")

func (r *TargetClients) keep(name string, next *targetClient) {
	r.mu.Lock()
	defer r.mu.Unlock()
	drop := func(name string) {
		if before := r.known[name]; before != nil {
			before.link.Lose(errReplaced)
			delete(r.known, name)
		}
	}
	drop(name)
	for other := range r.known {
		if len(r.known) < maxTargetClients {
			break
		}
		drop(other)
	}
	r.known[name] = next
}
