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
	// firstRetry and lastRetry limit the wait between attempts, which doubles each time.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// unreachableRetry limits the wait while the server is unreachable: all work depends on that
	// server, and retries do not load it.
	unreachableRetry = 10 * time.Second
	// reopenWithin is the time after the end of a stream during which Absent is still believed.
	reopenWithin = 5 * time.Second
	// listWithin is the time that a server may take to stream the initial list. After that,
	// streamed lists count as unsupported.
	listWithin = time.Minute
)

// errNotResumed is the trouble of a stream until the cause is known.
var errNotResumed = fmt.Errorf("the watch ended and could not be resumed within %s", reopenWithin)

var errStopped = errors.New("the watch was stopped")

// target is the target of one stream: the objects of a kind with our label, or one object by name.
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

// stream keeps the view of one target up to date until its context ends. It retries failures at
// growing intervals.
type stream struct {
	target
	keeper
	view
	api     api
	mapping func(context.Context, schema.GroupVersionKind) (*meta.RESTMapping, error)
	clock   clock.WithDelayedExecution
	// changed reports single objects; settled reports changes of the view's health.
	changed func(s *stream, old, new *Observation)
	settled func(*stream, effect)

	// kick ends a wait between attempts.
	kick chan struct{}
	// reflector for the last mapping; nil for none. Only run's goroutine uses it.
	reflector *cache.Reflector

	// listOnly is set if the server did not stream a list in time.
	listOnly atomic.Bool

	timers sync.Mutex
	// losing is the timer for a closed stream to be reopened.
	losing clock.Timer
}

// run watches until the context ends.
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

// longestRetry returns the longest wait between retries. It is shorter if the server is unreachable
// than if the server refuses.
func longestRetry(err error) time.Duration {
	var unanswered *url.Error
	if utilnet.IsConnectionRefused(err) || errors.As(err, &unanswered) {
		return unreachableRetry
	}
	return lastRetry
}

// attempt resolves the resource and watches it until the watch ends.
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

// resolve returns the mapping, and checks that its scope fits the target.
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

// pause waits between attempts, and returns true if kick ended the wait. Attempts are at least
// firstRetry apart, even with frequent kicks.
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

// hurry makes a stream in trouble retry soon.
func (s *stream) hurry() {
	if s.current() {
		return
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// fail records an error, unless the stream was stopped.
func (s *stream) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if gone(err) {
		// A kind that is served again may have another resource, so the mapping is resolved again.
		s.reflector = nil
		s.settle(s.vanished(err))
		return
	}
	s.settle(s.failed(err))
}

func (s *stream) settle(e effect) {
	if s.current() {
		s.disarm()
	}
	if e.state || len(e.objects) > 0 {
		s.settled(s, e)
	}
}

// arm starts the timer for a closed stream to be reopened.
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

// end makes the view unhealthy.
func (s *stream) end() {
	s.disarm()
	s.closed()
	s.failed(errStopped)
}
