package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/admission/plugin/privilege"
	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff/live"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/kubeconfig"
	"github.com/penstock-project/penstock/pkg/target"
)

// mostTargetReads bounds the clusters to which requests keep a way.
const mostTargetReads = 16

// targetReads are ways to the clusters of Secrets for what requests ask: any replica
// answers those, while only the leader follows Secrets. A Secret is read for each of
// them, so that one which is gone or another one is noticed at once.
type targetReads struct {
	client    kubernetes.Interface
	namespace string
	visitor   target.Visitor

	mu   sync.Mutex
	ways map[string]*targetRead
}

// targetRead is the way by one state of a Secret.
type targetRead struct {
	version string
	// cluster is which one it is (see target.Visitor).
	cluster string
	config  *rest.Config
	link    *kubeconfig.Link

	once  sync.Once
	live  *live.Live
	blind error
}

func newTargetReads(host *host, namespace string, visitor target.Visitor) (*targetReads, error) {
	client, err := kubernetes.NewForConfig(host.configFor("targets"))
	if err != nil {
		return nil, fmt.Errorf("making a client for kubeconfigs of targets: %w", err)
	}
	return &targetReads{client: client, namespace: namespace, visitor: visitor, ways: map[string]*targetRead{}}, nil
}

// to returns the way by a Secret. The cluster is looked at when the Secret is another
// one than before; it is not made ours by reading.
func (r *targetReads) to(ctx context.Context, name string) (*targetRead, error) {
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
	way := r.ways[name]
	r.mu.Unlock()
	if way != nil && way.version == version {
		return way, nil
	}
	config, err := target.Config(secret)
	if err != nil {
		return nil, refuse(err)
	}
	way = &targetRead{version: version, link: kubeconfig.NewLink()}
	if way.cluster, err = r.visitor.Look(ctx, config); err != nil {
		return nil, refuse(err)
	}
	if err := way.link.Lead(config); err != nil {
		return nil, refuse(err)
	}
	way.config = way.link.Config()
	way.config.UserAgent = r.visitor.UserAgent
	r.keep(name, way)
	return way, nil
}

// errReplaced is why nothing goes by what a Secret was before.
var errReplaced = errors.New("its kubeconfig was replaced, or not used for long")

// keep keeps a way in place of the one before.
func (r *targetReads) keep(name string, way *targetRead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	drop := func(name string) {
		if before := r.ways[name]; before != nil {
			before.link.Lose(errReplaced)
			delete(r.ways, name)
		}
	}
	drop(name)
	for other := range r.ways {
		if len(r.ways) < mostTargetReads {
			break
		}
		drop(other)
	}
	r.ways[name] = way
}

// liveAnywhere compares revisions with the cluster that they are rolled out into.
type liveAnywhere struct {
	*api
	here *live.Live
}

var _ revisiondiff.Live = liveAnywhere{}

// Preview implements revisiondiff.Live. Who may not use the cluster of a Secret learns
// nothing of it, not even whether there is one.
func (l liveAnywhere) Preview(ctx context.Context, question revisiondiff.LiveQuestion) (revisiondiff.Preview, error) {
	secret := question.Revision.Target()
	if secret == "" {
		return l.here.Preview(ctx, question)
	}
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return revisiondiff.Preview{}, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	switch decision, _, err := l.authorizer.Authorize(ctx, privilege.Using(caller, secret)); {
	case decision == authorizer.DecisionAllow:
	case err != nil:
		return revisiondiff.Preview{}, apierrors.NewServiceUnavailable("asking what you may do: " + err.Error())
	default:
		return revisiondiff.Preview{Withheld: len(question.Manifests)}, nil
	}
	way, err := l.extra.targetReads.to(ctx, secret)
	if err == nil {
		way.once.Do(func() { way.live, way.blind = l.look(way, secret) })
		err = way.blind
	}
	if err != nil {
		return revisiondiff.Preview{}, apierrors.NewServiceUnavailable("what a rollout would change now cannot be told: " + err.Error())
	}
	return way.live.Preview(ctx, question)
}

// look makes what compares with the cluster of a Secret.
func (l liveAnywhere) look(way *targetRead, secret string) (*live.Live, error) {
	rights, err := newTargetRights(l.authorizer, secret, way.config)
	if err != nil {
		return nil, err
	}
	return l.newLiveIn(sight{
		config: way.config, rights: rights, who: rights.self,
		role: "give the user of its kubeconfig the rights that docs/how-to/target-cluster.md lists",
		work: func(ctx context.Context, revision *hub.ClusterExtensionRevision) (rollout.Work, int64, error) {
			return l.workAlone(ctx, revision, way.cluster)
		},
	})
}
