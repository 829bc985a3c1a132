package observe

import (
	"context"
	"errors"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// api lists and watches a resource.
type api interface {
	list(ctx context.Context, mapping *meta.RESTMapping, t target, whole bool, o metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, mapping *meta.RESTMapping, t target, whole bool, o metav1.ListOptions) (watch.Interface, error)
}

// clients are the api of a real server.
type clients struct {
	metadata metadata.Interface
	dynamic  dynamic.Interface
}

func newClients(config *rest.Config) (*clients, error) {
	config = rest.CopyConfig(config)
	// A watch lasts for minutes, and a new leader starts all of them at once: the
	// server tells by itself when that is too much.
	config.Timeout, config.QPS, config.RateLimiter = 0, -1, nil
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &clients{}
	if c.metadata, err = metadata.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *clients) list(ctx context.Context, m *meta.RESTMapping, t target, whole bool, o metav1.ListOptions) (runtime.Object, error) {
	if whole {
		return c.dynamic.Resource(m.Resource).Namespace(t.Namespace).List(ctx, o)
	}
	return c.metadata.Resource(m.Resource).Namespace(t.Namespace).List(ctx, o)
}

func (c *clients) watch(ctx context.Context, m *meta.RESTMapping, t target, whole bool, o metav1.ListOptions) (watch.Interface, error) {
	if whole {
		return c.dynamic.Resource(m.Resource).Namespace(t.Namespace).Watch(ctx, o)
	}
	return c.metadata.Resource(m.Resource).Namespace(t.Namespace).Watch(ctx, o)
}

// errClosedAtOnce stands for what client-go makes a watch that ends at once of:
// connections that break or time out before there is an answer.
var errClosedAtOnce = errors.New("the connection ended before the server answered")

// feed lets a reflector list and watch the target, and the view hear of every
// success and failure: the reflector tries again by itself and tells nobody.
func (s *stream) feed(mapping *meta.RESTMapping) cache.ListerWatcher {
	whole := !metadataOnly(s.kind, s.reads)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			s.selects(&o)
			list, err := s.api.list(ctx, mapping, s.target, whole, o)
			if err != nil {
				// A nil pointer in an interface would not be nil.
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			initial := o.SendInitialEvents != nil && *o.SendInitialEvents
			if initial && s.listOnly.Load() {
				return nil, &initialListError{"the server does not stream lists"}
			}
			s.selects(&o)
			w, err := s.api.watch(ctx, mapping, s.target, whole, o)
			if err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
				err = errClosedAtOnce
			}
			if err != nil {
				return nil, s.refused(ctx, initial, err)
			}
			s.settle(s.opened(initial))
			return s.guard(w, initial), nil
		},
	}
}

// selects what the target is.
func (s *stream) selects(o *metav1.ListOptions) {
	if s.byName() {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.Name).String()
		return
	}
	o.LabelSelector = s.names.ChainLabel
}

// refused judges the error of a watch.
func (s *stream) refused(ctx context.Context, initial bool, err error) error {
	if !initial {
		if !gone(err) && ctx.Err() == nil {
			// The reflector may try again without returning. It returns for a kind that is
			// gone, see fail.
			s.settle(s.failed(err))
		}
		return err
	}
	// A plain list follows and tells the truth. But of these two the reflector
	// believes that waiting helps, and waits without looking at the context
	// (client-go, Reflector.watchList).
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		return &initialListError{err.Error()}
	}
	return err
}

// initialListError hides from the reflector what kind of error it is.
type initialListError struct{ message string }

func (e *initialListError) Error() string { return e.message }

// guard tells the view when the reflector is done with a watch, and ends one
// that streams no list in time.
func (s *stream) guard(w watch.Interface, initial bool) watch.Interface {
	g := &guarded{Interface: w, stream: s, done: func() {}}
	if initial {
		timer := s.clock.AfterFunc(listWithin, func() {
			if !s.current() {
				s.listOnly.Store(true)
				w.Stop()
			}
		})
		g.done = func() { timer.Stop() }
	}
	return g
}

// guarded is a watch that says when it is stopped.
type guarded struct {
	watch.Interface
	stream *stream
	done   func()
	once   sync.Once
}

// Stop counts once: the reflector may stop a watch again when another one is
// open already.
func (g *guarded) Stop() {
	g.Interface.Stop()
	g.once.Do(func() {
		g.done()
		if g.stream.closed() {
			g.stream.arm()
		}
	})
}

// gone is true when the kind is not served, as opposed to not reachable or not
// allowed.
func gone(err error) bool {
	return meta.IsNoMatchError(err) ||
		apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
