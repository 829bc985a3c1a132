package target

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/rollout/kubeconfig"
)

const (
	// retry is the first pause between two tries to reach a cluster. It doubles up to retryMax.
	// tryTimeout bounds one try.
	retry      = time.Second
	retryMax   = 10 * time.Second
	tryTimeout = 10 * time.Second
)

// errUnused is the error of requests to a cluster that no chain uses.
var errUnused = errors.New("no extension is rolled out there any more")

// follower watches one Secret, and keeps an engine for its cluster.
type follower struct {
	*Targets
	secret string
	stop   context.CancelFunc
	// changed receives an element when the answer of the watch may have changed.
	changed chan struct{}
	// way is the connection to the last claimed cluster; nil before.
	way *way

	// The lock of Targets guards the chains that need the Secret, and the answer for them.
	chains  map[string]bool
	cluster Cluster
	trouble error
}

// way is the connection to one cluster. Its engine writes only to that cluster.
type way struct {
	Cluster
	link *kubeconfig.Link
	// used is the configuration of the link; nil while requests are refused.
	used *rest.Config
	end  func()
}

// run serves the Secret until ctx ends:
//
//  1. It reads the Secret.
//  2. If the Secret is new, it identifies and claims the cluster.
//  3. It directs the engine's requests to the cluster, or refuses them.
//  4. It notifies the chains that need the Secret.
func (f *follower) run(ctx context.Context) {
	defer f.close(errUnused)
	secret := f.watch(ctx)
	wait := retry
	for ctx.Err() == nil {
		config, err := f.read(secret)
		if err == nil {
			err = f.lead(ctx, config)
		}
		var again <-chan time.Time
		switch {
		case ctx.Err() != nil || errors.Is(err, ErrNotYet):
		case err != nil:
			f.lose(ctx, err)
			again = time.After(wait)
			wait = min(2*wait, retryMax)
		default:
			wait = retry
			f.say(f.way.Cluster, nil)
		}
		select {
		case <-ctx.Done():
		case <-f.changed:
		case <-again:
		}
	}
}

func (f *follower) watch(ctx context.Context) *objectwatch.Watch[*corev1.Secret] {
	look := func() {
		select {
		case f.changed <- struct{}{}:
		default: // one pending element is enough
		}
	}
	watching := objectwatch.New(f.options.Client, f.options.Client.CoreV1().Secrets(f.options.Namespace), &corev1.Secret{},
		objectwatch.Options{Name: f.secret, Changed: look, Failed: look})
	f.running.Go(func() { watching.Run(ctx) })
	return watching
}

// read returns the configuration from the Secret. While the host cannot be reached, it uses the
// last version of the Secret.
func (f *follower) read(watching *objectwatch.Watch[*corev1.Secret]) (*rest.Config, error) {
	secret, err := watching.Get()
	switch {
	case errors.Is(err, objectwatch.ErrUnknown):
		return nil, ErrNotYet
	case err != nil:
		return nil, &UnavailableError{Secret: f.named(), Why: fmt.Errorf("it cannot be read: %w", err)}
	case secret == nil:
		return nil, &UnavailableError{Secret: f.named(), NeedsPerson: true, Why: errors.New("there is no such Secret")}
	}
	config, err := Config(secret)
	if err != nil {
		return nil, &UnavailableError{Secret: f.named(), NeedsPerson: true, Why: err}
	}
	return config, nil
}

// lead directs the engine's requests to the cluster of a kubeconfig, after it has claimed the
// cluster. If the cluster has changed, a new engine starts, because the state of an engine belongs
// to one cluster.
func (f *follower) lead(ctx context.Context, config *rest.Config) error {
	if f.way != nil && f.way.used != nil && reflect.DeepEqual(f.way.used, config) {
		return nil
	}
	trying, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	cluster, err := f.options.Enter(trying, config)
	if err != nil {
		var claimed *ClaimedError
		return &UnavailableError{Secret: f.named(), NeedsPerson: errors.As(err, &claimed), Why: err}
	}
	if f.way != nil && f.way.ID != cluster {
		f.close(fmt.Errorf("the Secret now leads to cluster %s", cluster))
	}
	if f.way == nil {
		f.way, err = f.open(ctx, cluster, config)
	} else {
		err = f.way.link.Lead(config)
	}
	if err != nil {
		return &UnavailableError{Secret: f.named(), Why: err}
	}
	f.way.used = config
	f.log(ctx).Info("Rolling out by the kubeconfig of a Secret", "secret", f.named(), "server", config.Host, "cluster", cluster)
	return nil
}

// open connects to a cluster and starts an engine for it.
func (f *follower) open(ctx context.Context, cluster string, config *rest.Config) (*way, error) {
	link := kubeconfig.NewLink()
	if err := link.Lead(config); err != nil {
		return nil, err
	}
	engine, run, err := f.options.Open(ctx, link.Config())
	if err != nil {
		link.Lose(err)
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	f.running.Go(func() {
		defer close(ended)
		if err := run(ctx); err != nil {
			f.log(ctx).Error(err, "The work for the target cluster ended")
		}
	})
	return &way{Cluster: Cluster{ID: cluster, Engine: engine}, link: link, end: func() { cancel(); <-ended }}, nil
}

// lose refuses the engine's requests, unless an earlier configuration still works and only the new
// one cannot be checked. If the earlier connection fails, too, the cluster's own errors show it.
func (f *follower) lose(ctx context.Context, err error) {
	var unavailable *UnavailableError
	known := errors.As(err, &unavailable) && unavailable.NeedsPerson
	if f.way != nil && f.way.used != nil && !known {
		f.log(ctx).Error(err, "The new kubeconfig of the target cluster cannot be used; trying again, and the one before stays in use")
		return
	}
	if f.way != nil {
		f.way.link.Lose(err)
		f.way.used = nil
	}
	f.mu.Lock()
	cluster, told := f.cluster, message(f.trouble) == err.Error()
	f.mu.Unlock()
	if !told {
		f.log(ctx).Error(err, "The target cluster cannot be used: nothing is rolled out there")
	}
	f.say(cluster, err)
}

func (f *follower) log(ctx context.Context) klog.Logger {
	return klog.FromContext(ctx).WithName("target").WithValues("secret", f.named())
}

func (f *follower) close(why error) {
	if f.way == nil {
		return
	}
	f.way.link.Lose(why)
	f.way.end()
	f.way = nil
}
