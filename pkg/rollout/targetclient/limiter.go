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
	// defaultPause is the pause after a 429 without Retry-After.
	defaultPause = time.Second
	// longestPause limits the pause that one answer can cause: a server that asks for an hour must
	// not stop every rollout for an hour.
	longestPause = time.Minute
)

// limiter limits the concurrent requests. If the server is busy, it pauses all requests to the same
// API group: each group may have its own server, and one busy server must not stop other rollouts.
// It is below client-go's own retries, so that it sees every answer.
type limiter struct {
	clock clock.Clock
	// root is the path below which the cluster is served, without a trailing slash.
	root string
	// slots has one element per running request.
	slots chan struct{}

	mu sync.Mutex
	// until is the end of the pause of each group, by the result of the function group. Without a
	// pause, it is absent or in the past.
	until map[string]time.Time
}

func newLimiter(limit int, clk clock.Clock) *limiter {
	return &limiter{clock: clk, slots: make(chan struct{}, limit), until: map[string]time.Time{}}
}

// wrap returns a transport that shares this limiter with all transports that it wraps.
func (l *limiter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		group := l.group(request.URL.Path)
		if err := l.admit(request.Context(), group); err != nil {
			// A transport must close the body even if it does not send the request.
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

// group returns the API group of a path: /api, or /apis with the group's name. All other paths are
// one group.
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

// admit waits for a free slot and for the end of the group's pause, and takes the slot.
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

func (l *limiter) remaining(group string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, paused := l.until[group]
	if !paused {
		return 0
	}
	return until.Sub(l.clock.Now())
}

// heed starts or extends the pause that an answer asks for.
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

// retryAfter parses the header in both forms: seconds, or a date.
func retryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(longestPause/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}
