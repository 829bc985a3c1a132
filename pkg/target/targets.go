package target

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/rollout"
)

// ErrNotYet reports that the cluster of a Secret is not identified yet.
var ErrNotYet = errors.New("the way to the target cluster is not known yet")

// Options of targets. All are required.
type Options struct {
	// Client reads Secrets of the host.
	Client kubernetes.Interface
	// Namespace is the namespace of the Secrets.
	Namespace string
	// Enter claims a cluster, and returns its identity (see Visitor.Enter).
	Enter func(ctx context.Context, config *rest.Config) (string, error)
	// Open creates an engine for a cluster, and a function that must run while the engine is used.
	Open func(ctx context.Context, config *rest.Config) (*rollout.Engine, func(ctx context.Context) error, error)
	// Notify is called with a chain when the state of its target changes.
	Notify func(chain string)
}

// Cluster is a target cluster of chains.
type Cluster struct {
	// ID is the uid of its namespace kube-system.
	ID     string
	Engine *rollout.Engine
}

// Targets holds the clusters that chains name, by Secret. It watches a Secret while any chain needs
// it. It is safe for concurrent use, but only one goroutine at a time may use it for one chain.
type Targets struct {
	options Options
	log     klog.Logger
	running sync.WaitGroup

	mu sync.Mutex
	// secrets maps chains to Secrets; followers maps Secrets to their followers.
	secrets   map[string]string
	followers map[string]*follower
	// ended is true after ctx ended: no follower starts any more.
	ended bool
}

// New returns targets that work until ctx ends. Then call Wait.
func New(ctx context.Context, options Options) *Targets {
	t := &Targets{options: options, log: klog.FromContext(ctx), secrets: map[string]string{}, followers: map[string]*follower{}}
	context.AfterFunc(ctx, t.end)
	return t
}

func (t *Targets) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, f := range t.followers {
		f.stop()
	}
}

// Use returns the cluster of a Secret for a chain, and replaces the chain's earlier Secret.
// ErrNotYet means that the answer is pending. An *UnavailableError means that the cluster is
// unavailable. Notify is called when the answer changes.
func (t *Targets) Use(chain, secret string) (Cluster, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.secrets[chain] != secret {
		t.leave(chain)
		t.secrets[chain] = secret
	}
	f := t.followers[secret]
	if f == nil {
		f = t.follow(secret)
	}
	f.chains[chain] = true
	if f.trouble != nil {
		return Cluster{}, f.trouble
	}
	return f.cluster, nil
}

// Leave records that a chain no longer uses a target.
func (t *Targets) Leave(chain string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(chain)
}

// Wait returns when everything has stopped after the end of ctx.
func (t *Targets) Wait() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.running.Wait()
}

// Followed returns the number of watched Secrets.
func (t *Targets) Followed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.followers)
}

// leave is Leave for callers that hold the lock.
func (t *Targets) leave(chain string) {
	secret, known := t.secrets[chain]
	if !known {
		return
	}
	delete(t.secrets, chain)
	f := t.followers[secret]
	delete(f.chains, chain)
	if f.cluster.Engine != nil {
		f.cluster.Engine.Forget(chain)
	}
	if len(f.chains) == 0 {
		f.stop()
		delete(t.followers, secret)
	}
}

// follow starts a follower of a Secret. The caller holds the lock.
func (t *Targets) follow(secret string) *follower {
	// The follower outlives the pass that needs it.
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), t.log))
	f := &follower{
		Targets: t, secret: secret, stop: stop, chains: map[string]bool{},
		changed: make(chan struct{}, 1), trouble: ErrNotYet,
	}
	t.followers[secret] = f
	if !t.ended {
		t.running.Go(func() { f.run(ctx) })
	}
	return f
}

// say changes the answer for a Secret, and notifies the chains that need it.
func (f *follower) say(cluster Cluster, trouble error) {
	f.mu.Lock()
	same := f.cluster == cluster && message(f.trouble) == message(trouble)
	f.cluster, f.trouble = cluster, trouble
	var chains []string
	for chain := range f.chains {
		chains = append(chains, chain)
	}
	f.mu.Unlock()
	if same {
		return
	}
	for _, chain := range chains {
		f.options.Notify(chain)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (f *follower) named() string { return fmt.Sprintf("%s/%s", f.options.Namespace, f.secret) }
