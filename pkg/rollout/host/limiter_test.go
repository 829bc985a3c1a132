package host

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// occupy takes a slot of the host's limiter without a request.
func occupy(h *Host) (release func()) {
	h.limiter.slots <- struct{}{}
	return func() { <-h.limiter.slots }
}

// get sends a request past client-go, whose own retries would hide the answers.
func get(ctx context.Context, l *limiter, answer *http.Response) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.com", nil)
	if err != nil {
		return err
	}
	_, err = l.wrap(roundTripperFunc(func(*http.Request) (*http.Response, error) { return answer, nil })).RoundTrip(request)
	return err
}

func answer(code int, retryAfter string) *http.Response {
	response := &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody}
	if retryAfter != "" {
		response.Header.Set("Retry-After", retryAfter)
	}
	return response
}

func TestPause(t *testing.T) {
	now := time.Unix(1e9, 0)
	cases := map[string]struct {
		reason string
		answer *http.Response
		want   time.Duration
	}{
		"OK":              {"nothing to wait for", answer(200, ""), 0},
		"OKWithHeader":    {"only a refusal asks to wait", answer(200, "5"), 0},
		"TooMany":         {"the server says how long", answer(429, "5"), 5 * time.Second},
		"TooManyDate":     {"or until when", answer(429, now.Add(7*time.Second).UTC().Format(http.TimeFormat)), 7 * time.Second},
		"TooManyNoHeader": {"or leaves it to us", answer(429, ""), defaultPause},
		"TooManyForever":  {"one answer must not stop everybody for an hour", answer(429, "3600"), longestPause},
		"TooManyNonsense": {"nonsense is no header", answer(429, "soon"), defaultPause},
		"Unavailable":     {"a server that shuts down says so", answer(503, "2"), 2 * time.Second},
		"UnavailableAPI":  {"one aggregated API is down, the others are not", answer(503, ""), 0},
		"InternalError":   {"a failing webhook is not a busy server", answer(500, "2"), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(1, clocktesting.NewFakeClock(now))
			if err := get(context.Background(), l, tc.answer); err != nil {
				t.Fatal(err)
			}
			if got := max(0, l.remaining()); got != tc.want {
				t.Errorf("%s: want a pause of %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

func TestPauseHoldsEverybody(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	l := newLimiter(4, clk)
	ctx := context.Background()
	if err := get(ctx, l, answer(429, "5")); err != nil {
		t.Fatal(err)
	}

	done := make(chan error, 1)
	go func() { done <- get(ctx, l, answer(200, "")) }()
	waitFor(t, "the request to wait", clk.HasWaiters)
	clk.Step(4 * time.Second)
	select {
	case <-done:
		t.Fatal("a request was sent while the server had asked for a pause")
	default:
	}
	clk.Step(time.Second)
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("no request was sent after the pause")
	}
}

func TestPauseEndsWithTheContext(t *testing.T) {
	l := newLimiter(1, clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	if err := get(context.Background(), l, answer(429, "5")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := get(ctx, l, answer(200, "")); !errors.Is(err, context.Canceled) {
		t.Errorf("want the context's error, got %v", err)
	}
	if len(l.slots) != 0 {
		t.Error("a request that was not sent keeps its slot")
	}
}

func TestInFlightIsBounded(t *testing.T) {
	const limit, requests = 3, 20
	var inFlight, highest atomic.Int64
	reached, release := make(chan struct{}, requests), make(chan struct{})
	server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
		n := inFlight.Add(1)
		for old := highest.Load(); n > old && !highest.CompareAndSwap(old, n); old = highest.Load() {
		}
		reached <- struct{}{}
		<-release
		inFlight.Add(-1)
		reply(w, http.StatusOK, partial("a"))
	}}
	h := serve(t, server, clock.RealClock{}, limit)
	done := make(chan error, requests)
	for range requests {
		go func() { _, err := h.ReadMetadata(context.Background(), namespace("a")); done <- err }()
	}
	for range limit {
		<-reached
	}
	close(release)
	for range requests {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if highest.Load() != limit {
		t.Errorf("want %d requests in flight at most and at best, got %d", limit, highest.Load())
	}
}

// TestRetriesPassTheLimiter: client-go repeats a request that got a 429 by
// itself; the limiter has to see that, or all others would go on meanwhile.
func TestRetriesPassTheLimiter(t *testing.T) {
	var asked atomic.Int64
	server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		reply(w, http.StatusOK, partial("a"))
	}}
	h := serve(t, server, clock.RealClock{}, 0)
	if _, err := h.Mapping(namespace("a").GroupVersionKind()); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := h.ReadMetadata(context.Background(), namespace("a")); err != nil {
		t.Fatal(err)
	}
	if h.limiter.until.Before(start) {
		t.Error("the limiter did not see the 429")
	}
	if got := h.RequestsByMethod()[http.MethodGet]; got != 3 {
		t.Errorf("discovery, the refused request and its repetition are 3 requests, counted %d", got)
	}
}

// waitFor polls what has no channel to wait on.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}
