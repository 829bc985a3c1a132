package targetclient

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// defaultPause follows a 429 that does not say how long to wait.
	defaultPause = time.Second
	// longestPause bounds what one answer can do to all others: a server that
	// asks for an hour must not stop every rollout for an hour.
	longestPause = time.Minute
)

// limiter bounds the requests in flight, and when the server says that it is
// busy pauses all those to the same API group: each group may be served by
// another server, and one that is always busy must not stop the rollout of
// everything else. It sits below client-go's own retries, which sleep for one
// request only, so that it sees every answer.
type limiter struct {
	clock clock.Clock
	// root is the path below which the cluster is served, without a slash at
	// the end.
	root string
	// slots has one element per request in flight.
	slots chan struct{}

	mu sync.Mutex
	// until is the end of the pause of each group, by the result of the function group. It is
	// absent or in the past without a pause.
	until map[string]time.Time
}

func newLimiter(limit int, clk clock.Clock) *limiter {
	return &limiter{clock: clk, slots: make(chan struct{}, limit), until: map[string]time.Time{}}
}

// wrap returns a transport whose requests are limited together with those of all
// other transports wrapped by this limiter.
func (l *limiter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		group := l.group(request.URL.Path)
		if err := l.admit(request.Context(), group); err != nil {
			// A transport has to close the body also when it sends nothing.
			if request.Body != nil {
				request.Body.Close()
			}
			return nil, err
		}
		defer func() { <-l.slots }()
		response, err := next.RoundTrip(request)
		if err == nil {
			l.heed(group, response)
		}
		return response, err
	})
}

// group returns the beginning of a path that tells API groups apart: /api, or
// /apis with the group's name. Paths of no group stay together.
func (l *limiter) group(path string) string {
	rest := strings.TrimPrefix(path, l.root)
	first, rest, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	name, _, _ := strings.Cut(rest, "/")
	switch {
	case first == "api":
		return "/api"
	case first == "apis" && name != "":
		return "/apis/" + name
	default:
		return "/"
	}
}

// admit waits for a free slot outside of a pause of the group, and takes it.
func (l *limiter) admit(ctx context.Context, group string) error {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		wait := l.remaining(group)
		if wait <= 0 {
			return nil
		}
		<-l.slots
		timer := l.clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// remaining returns the remaining pause of a group; zero or less is none.
func (l *limiter) remaining(group string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, paused := l.until[group]
	if !paused {
		return 0
	}
	return until.Sub(l.clock.Now())
}

// heed starts or prolongs the pause that an answer asks for.
func (l *limiter) heed(group string, response *http.Response) {
	now := l.clock.Now()
	pause, asked := retryAfter(response.Header.Get("Retry-After"), now)
	switch {
	case response.StatusCode == http.StatusTooManyRequests:
		if !asked {
			pause = defaultPause
		}
	case response.StatusCode == http.StatusServiceUnavailable && asked:
	default:
		return
	}
	until := now.Add(min(pause, longestPause))
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.until, func(_ string, end time.Time) bool { return !end.After(now) })
	if until.After(l.until[group]) {
		l.until[group] = until
	}
}

// retryAfter reads the header in both of its forms: seconds, or a date.
func retryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(longestPause/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

// roundTripperFunc is a transport that is a function.
type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}
