package observe

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// firstRetry and lastRetry bound the waits between attempts; each one is
	// twice as long as the one before.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// unreachableRetry bounds them while there is no answer at all: everything
	// waits for that server, and asking costs it nothing.
	unreachableRetry = 10 * time.Second
	// reopenWithin is the time after the end of a stream for which absence still counts.
	reopenWithin = 5 * time.Second
	// listWithin is the time that a server may take to stream the initial list. After that the
	// server counts as not supporting streamed lists.
	listWithin = time.Minute
)

// errNotResumed is the trouble of a stream until more is known.
var errNotResumed = fmt.Errorf("the watch ended and could not be resumed within %s", reopenWithin)

// errStopped is the trouble of a stream that was stopped.
var errStopped = errors.New("the watch was stopped")

// target is the target of one stream: a kind by our label, or one object by name.
type target struct {
	schema.GroupVersionKind
	// Namespace and Name of the object; Name is empty for a watch by label.
	Namespace, Name string
}

func (t target) byName() bool { return t.Name != "" }

func (t target) String() string {
	if !t.byName() {
		return fmt.Sprintf("%s in %s", t.Kind, t.GroupVersion())
	}
	return fmt.Sprintf("%s %q in %s", t.Kind, t.Name, t.GroupVersion())
}

// stream keeps a view of one target up to date. It survives everything but its
// context: what fails is tried again, more and more slowly.
type stream struct {
	target
	keeper
	view
	api     api
	mapping func(context.Context, schema.GroupVersionKind) (*meta.RESTMapping, error)
	clock   clock.WithDelayedExecution
	// changed and settled tell about single objects, and about what can be
	// believed.
	changed func(s *stream, old, new *Observation)
	settled func(*stream, effect)

	// kick ends a wait between attempts.
	kick chan struct{}
	// reflector of the mapping found last; nil when there is none. Only run's
	// goroutine uses it.
	reflector *cache.Reflector

	// listOnly is set when the server did not stream a list in time.
	listOnly atomic.Bool

	timers sync.Mutex
	// losing runs while a closed stream has to be opened again.
	losing clock.Timer
}

// run returns when the context ends.
func (s *stream) run(ctx context.Context) {
	defer s.end()
	retry := firstRetry
	for ctx.Err() == nil {
		started := s.clock.Now()
		err := s.attempt(ctx)
		took := s.clock.Since(started)
		if err != nil {
			s.fail(ctx, err)
		}
		if took > lastRetry {
			retry = firstRetry
		}
		if s.pause(ctx, wait.Jitter(min(retry, longestRetry(err)), 0.2), took) {
			retry = firstRetry
			continue
		}
		retry = min(2*retry, lastRetry)
	}
}

// longestRetry returns the longest pause between retries, which differs for an unreachable server and
// for one that refuses.
func longestRetry(err error) time.Duration {
	var unanswered *url.Error
	if utilnet.IsConnectionRefused(err) || errors.As(err, &unanswered) {
		return unreachableRetry
	}
	return lastRetry
}

// attempt finds the resource and watches it until that ends.
func (s *stream) attempt(ctx context.Context) error {
	if s.reflector == nil {
		mapping, err := s.resolve(ctx)
		if err != nil {
			return err
		}
		s.reflector = cache.NewReflectorWithOptions(s.feed(mapping), nil, store{s}, cache.ReflectorOptions{
			Name:            "observe",
			TypeDescription: s.target.String(),
			Clock:           s.clock,
			Backoff:         &wait.Backoff{Duration: firstRetry, Cap: unreachableRetry, Steps: 8, Factor: 2, Jitter: 0.2},
		})
	}
	return s.reflector.ListAndWatchWithContext(ctx)
}

// resolve asks for the mapping, which has to fit what is wanted.
func (s *stream) resolve(ctx context.Context) (*meta.RESTMapping, error) {
	mapping, err := s.mapping(ctx, s.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	if namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; s.byName() && namespaced != (s.Namespace != "") {
		return nil, fmt.Errorf("namespace %q does not fit the scope of the kind, %q", s.Namespace, mapping.Scope.Name())
	}
	return mapping, nil
}

// pause waits between attempts, and returns true when it was cut short. Attempts
// stay firstRetry apart all the same: whatever kicks may do so often.
func (s *stream) pause(ctx context.Context, longest, took time.Duration) (kicked bool) {
	shortest := max(0, firstRetry-took)
	started := s.clock.Now()
	select {
	case <-s.kick:
		kicked = true
	default:
		timer := s.clock.NewTimer(longest)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-s.kick:
			kicked = true
		}
	}
	if rest := shortest - s.clock.Since(started); kicked && rest > 0 {
		timer := s.clock.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
	}
	return kicked
}

// hurry makes a stream in trouble try again soon.
func (s *stream) hurry() {
	if s.current() {
		return
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// fail notes an error, unless it is our own stopping.
func (s *stream) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if gone(err) {
		// A kind that comes back may be another resource: ask again.
		s.reflector = nil
		s.settle(s.vanished(err))
		return
	}
	s.settle(s.failed(err))
}

// settle passes an effect on.
func (s *stream) settle(e effect) {
	if s.current() {
		s.disarm()
	}
	if e.state || len(e.objects) > 0 {
		s.settled(s, e)
	}
}

// arm starts the time in which a closed stream has to be opened again.
func (s *stream) arm() {
	s.timers.Lock()
	defer s.timers.Unlock()
	if s.losing == nil {
		s.losing = s.clock.AfterFunc(reopenWithin, func() {
			s.settle(s.lost(errNotResumed))
		})
	}
}

func (s *stream) disarm() {
	s.timers.Lock()
	defer s.timers.Unlock()
	if s.losing != nil {
		s.losing.Stop()
		s.losing = nil
	}
}

// end leaves a view that is not believed.
func (s *stream) end() {
	s.disarm()
	s.closed()
	s.failed(errStopped)
}
