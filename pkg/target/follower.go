package target

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	v1 "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/rollout/kubeconfig"
)

const (
	// retry is how long to wait for the next try to reach a cluster, doubling up to
	// retryMax; tryTimeout bounds one try.
	retry      = time.Second
	retryMax   = 10 * time.Second
	tryTimeout = 10 * time.Second
)

// errUnused is why nothing goes to a cluster that no chain needs.
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
	// unwatched is why the Secret cannot be watched.
	unwatched error
}

// way leads to one cluster; its engine knows that cluster and no other.
type way struct {
	Cluster
	link *kubeconfig.Link
	// used is what the link leads by; nil when it leads nowhere.
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
	informer := f.watch(ctx)
	wait := retry
	for ctx.Err() == nil {
		config, err := f.read(informer)
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
func (f *follower) watch(ctx context.Context) cache.SharedIndexInformer {
	one := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, f.secret).String()
	}
	informer := v1.NewFilteredSecretInformer(f.options.Client, f.options.Namespace, 0, cache.Indexers{}, one)
	look := func(any) {
		select {
		case f.changed <- struct{}{}:
		default: // one that has not been taken yet stands for this one too
		}
	}
	// An informer that has not run takes any handler.
	handler, _ := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, now any) { look(now) }, DeleteFunc: look,
	})
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		f.mu.Lock()
		f.unwatched = err
		f.mu.Unlock()
		look(nil)
	})
	f.running.Go(func() { informer.RunWithContext(ctx) })
	// That there is no such Secret is an answer, too, and brings no event.
	f.running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
			look(nil)
		}
	})
	return informer
}

// read returns where the Secret leads. Once it was seen, what was seen last holds while
// the host cannot be reached.
func (f *follower) read(informer cache.SharedIndexInformer) (*rest.Config, error) {
	if !informer.HasSynced() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.unwatched != nil {
			return nil, &UnavailableError{Secret: f.named(), Why: fmt.Errorf("it cannot be read: %w", f.unwatched)}
		}
		return nil, ErrNotYet
	}
	for _, object := range informer.GetStore().List() {
		secret, ok := object.(*corev1.Secret)
		if !ok || secret.Name != f.secret {
			continue
		}
		config, err := Config(secret)
		if err != nil {
			return nil, &UnavailableError{Secret: f.named(), NeedsPerson: true, Why: err}
		}
		return config, nil
	}
	return nil, &UnavailableError{Secret: f.named(), NeedsPerson: true, Why: errors.New("there is no such Secret")}
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
		f.close(fmt.Errorf("the Secret leads to cluster %s by now", cluster))
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
	f.log(ctx).Info("Rolling out into another cluster", "server", config.Host, "cluster", cluster)
	return nil
}

// open makes a way to a cluster, with an engine of its own.
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
			f.log(ctx).Error(err, "What runs for the target cluster ended")
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
