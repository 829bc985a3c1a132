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
	// retry is the first pause between tries to reach a cluster; it doubles up to retryMax.
	// tryTimeout bounds one try.
	retry      = time.Second
	retryMax   = 10 * time.Second
	tryTimeout = 10 * time.Second
)

// errUnused is the error of requests to a cluster that no chain uses any more.
var errUnused = errors.New("no extension is rolled out there any more")

// follower follows one Secret, and keeps an engine for the cluster that it leads to.
type follower struct {
	*Targets
	secret string
	stop   context.CancelFunc
	// changed has an element when the Secret, or what is known of it, is another one.
	changed chan struct{}
	// way to the cluster that was entered last; nil before.
	way *way

	// Under the lock of Targets: the chains that need it, and what is said to them.
	chains  map[string]bool
	cluster Cluster
	trouble error
}

// way leads to one cluster; its engine knows that cluster and no other.
type way struct {
	Cluster
	link *kubeconfig.Link
	// used has the connection of the link; nil when it leads nowhere.
	used *rest.Config
	// end stops what runs for the engine.
	end func()
}

// run follows the Secret until ctx ends:
//
//  1. what the Secret says is read,
//  2. where it leads is found out, when that is not known,
//  3. the engine's requests go there, or nowhere,
//  4. the chains that need it are told.
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

// watch watches the Secret, this one and no other.
func (f *follower) watch(ctx context.Context) *objectwatch.Watch[*corev1.Secret] {
	look := func() {
		select {
		case f.changed <- struct{}{}:
		default: // one that has not been taken yet stands for this one too
		}
	}
	watching := objectwatch.New(f.options.Client, f.options.Client.CoreV1().Secrets(f.options.Namespace), &corev1.Secret{},
		objectwatch.Options{Name: f.secret, Changed: look, Failed: look})
	f.running.Go(func() { watching.Run(ctx) })
	return watching
}

// read returns where the Secret leads. Once it was seen, what was seen last holds while
// the host cannot be reached.
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

// lead makes the engine's requests go where a kubeconfig leads, once it is found to lead
// to a cluster that is ours. In another cluster than before everything begins anew: what
// an engine knows is about one cluster.
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

// lose makes the engine's requests go nowhere, unless they go where the Secret led
// before and it is only not known where it leads now: what is wrong with that, the
// cluster says by itself.
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

// log says of which Secret it speaks.
func (f *follower) log(ctx context.Context) klog.Logger {
	return klog.FromContext(ctx).WithName("target").WithValues("secret", f.named())
}

// close ends the way for good.
func (f *follower) close(why error) {
	if f.way == nil {
		return
	}
	f.way.link.Lose(why)
	f.way.end()
	f.way = nil
}
