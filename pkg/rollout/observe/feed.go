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

type api interface {
	list(ctx context.Context, mapping *meta.RESTMapping, t target, whole bool, o metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, mapping *meta.RESTMapping, t target, whole bool, o metav1.ListOptions) (watch.Interface, error)
}

// clients implements api with a real server.
type clients struct {
	metadata metadata.Interface
	dynamic  dynamic.Interface
}

func newClients(config *rest.Config) (*clients, error) {
	config = rest.CopyConfig(config)
	// A watch lasts for minutes, and a new leader starts all watches at once. No client-side limit
	// is needed, because the server answers 429 when that is too much.
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

// errClosedAtOnce replaces the empty watch that client-go returns when a connection breaks or times
// out before the answer.
var errClosedAtOnce = errors.New("the connection ended before the server answered")

// feed lists and watches the target for a reflector. It reports every success and failure to the
// view, because the reflector retries by itself without reporting.
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

// selects restricts a list or watch to the target.
func (s *stream) selects(o *metav1.ListOptions) {
	if s.byName() {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.Name).String()
		return
	}
	o.LabelSelector = s.names.ChainLabel
}

func (s *stream) refused(ctx context.Context, initial bool, err error) error {
	if !initial {
		if !gone(err) && ctx.Err() == nil {
			// The reflector may retry without returning, so the error is reported here. For a kind
			// that is not served, the reflector returns (see fail).
			s.settle(s.failed(err))
		}
		return err
	}
	// A plain list follows and reports the real error. But after these two errors the reflector
	// would wait and ignore the context (client-go, Reflector.watchList), so their type is hidden.
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		return &initialListError{err.Error()}
	}
	return err
}

// initialListError hides the type of an error from the reflector.
type initialListError struct{ message string }

func (e *initialListError) Error() string { return e.message }

// guard reports the end of a watch to the view, and stops a watch that does not stream the list in
// time.
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

// guarded is a watch that reports its stop.
type guarded struct {
	watch.Interface
	stream *stream
	done   func()
	once   sync.Once
}

// Stop takes effect once: the reflector may stop a watch again after it has opened another watch.
func (g *guarded) Stop() {
	g.Interface.Stop()
	g.once.Do(func() {
		g.done()
		if g.stream.closed() {
			g.stream.arm()
		}
	})
}

// gone reports whether the kind is not served. It is false for an unreachable server and for a
// missing right.
func gone(err error) bool {
	return meta.IsNoMatchError(err) ||
		apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
