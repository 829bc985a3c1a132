package host

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// defaultPause follows a 429 that does not say how long to wait.
	defaultPause = time.Second
	// longestPause bounds what one answer can do to all others: an aggregated
	// API that asks for an hour must not stop every rollout for an hour.
	longestPause = time.Minute
)

// limiter bounds the requests in flight, and pauses all of them when the server
// says that it is busy. It sits below client-go's own retries, which sleep for
// one request only, so that it sees every answer.
type limiter struct {
	clock clock.Clock
	// slots has one element per request in flight.
	slots chan struct{}

	mu sync.Mutex
	// until is when the pause ends; in the past for none.
	until time.Time
}

func newLimiter(limit int, clk clock.Clock) *limiter {
	return &limiter{clock: clk, slots: make(chan struct{}, limit)}
}

// wrap returns a transport whose requests are limited together with those of all
// other transports wrapped by this limiter.
func (l *limiter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		if err := l.admit(request.Context()); err != nil {
			// A transport has to close the body also when it sends nothing.
			if request.Body != nil {
				request.Body.Close()
			}
			return nil, err
		}
		defer func() { <-l.slots }()
		response, err := next.RoundTrip(request)
		if err == nil {
			l.heed(response)
		}
		return response, err
	})
}

// admit waits for a free slot outside of a pause, and takes it.
func (l *limiter) admit(ctx context.Context) error {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		wait := l.remaining()
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

func (l *limiter) remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Sub(l.clock.Now())
}

// heed starts or prolongs the pause that an answer asks for.
func (l *limiter) heed(response *http.Response) {
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
	if until.After(l.until) {
		l.until = until
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
