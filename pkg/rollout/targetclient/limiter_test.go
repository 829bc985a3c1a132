package targetclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

const patience = 20 * time.Second

// occupy takes a slot of the client's limiter without a request.
func occupy(c *Client) (release func()) {
	c.limiter.slots <- struct{}{}
	return func() { <-c.limiter.slots }
}

// get sends a request without client-go, whose own retries would hide the answers.
func get(ctx context.Context, l *limiter, answer *http.Response) error {
	return getFrom(ctx, l, "/api/v1/namespaces/a", answer)
}

func getFrom(ctx context.Context, l *limiter, path string, answer *http.Response) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.com"+path, nil)
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
			if got := max(0, l.remaining("/api")); got != tc.want {
				t.Errorf("%s: want a pause of %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestPauseOfOneGroup: a busy aggregated API does not pause requests to other groups.
func TestPauseOfOneGroup(t *testing.T) {
	now := time.Unix(1e9, 0)
	cases := map[string]struct {
		reason       string
		root         string
		busy, other  string
		want, wanted time.Duration
	}{
		"Group":        {"a group waits alone", "", "/apis/a.example/v1/things", "/apis/b.example/v1/things", time.Minute, 0},
		"Core":         {"also from the core API", "", "/apis/a.example/v1/things", "/api/v1/namespaces/apis", time.Minute, 0},
		"OtherVersion": {"one server may serve all versions of a group", "", "/apis/a.example/v1/things", "/apis/a.example/v2", time.Minute, time.Minute},
		"Discovery":    {"the list of groups is nobody's", "", "/apis/a.example", "/apis", time.Minute, 0},
		"BehindAPath":  {"a cluster may be served below a path", "/clusters/one", "/clusters/one/apis/a.example/v1/things", "/clusters/one/apis/b.example/v1/things", time.Minute, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(1, clocktesting.NewFakeClock(now))
			l.root = tc.root
			if err := getFrom(context.Background(), l, tc.busy, answer(429, "60")); err != nil {
				t.Fatal(err)
			}
			if got := max(0, l.remaining(l.group(tc.busy))); got != tc.want {
				t.Errorf("%s: want a pause of %s for the busy one, got %s", tc.reason, tc.want, got)
			}
			if got := max(0, l.remaining(l.group(tc.other))); got != tc.wanted {
				t.Errorf("%s: want a pause of %s for the other one, got %s", tc.reason, tc.wanted, got)
			}
		})
	}
}

func TestGroupsOfAClusterBelowAPath(t *testing.T) {
	for address, want := range map[string]string{"https://example.com": "", "example.com/": "", "https://example.com/clusters/one/": "/clusters/one"} {
		c, err := New(Options{Config: &rest.Config{Host: address}})
		if err != nil {
			t.Fatal(err)
		}
		if c.limiter.root != want {
			t.Errorf("the cluster at %s is taken to be below %q, want %q", address, c.limiter.root, want)
		}
	}
}

// TestPausesAreForgotten: an ended pause takes no memory.
func TestPausesAreForgotten(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	l := newLimiter(1, clk)
	for _, group := range []string{"a", "b", "c"} {
		if err := getFrom(context.Background(), l, "/apis/"+group+"/v1", answer(429, "5")); err != nil {
			t.Fatal(err)
		}
		clk.Step(time.Minute)
	}
	if len(l.until) != 1 {
		t.Errorf("%d pauses are remembered, want the last one", len(l.until))
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
	c := serve(t, server, clock.RealClock{}, limit)
	done := make(chan error, requests)
	for range requests {
		go func() { _, err := c.ReadMetadata(context.Background(), namespace("a")); done <- err }()
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

// TestRetriesPassTheLimiter: client-go retries a request after a 429 by itself. The limiter must
// see the 429, or other requests would continue. A kube-apiserver 1.37 may answer a list with a 429
// while its cache lags.
func TestRetriesPassTheLimiter(t *testing.T) {
	for name, ask := range map[string]func(*Client) error{
		"Read": func(c *Client) error {
			_, err := c.ReadMetadata(context.Background(), namespace("a"))
			return err
		},
		"List": func(c *Client) error {
			found, err := c.Instances(context.Background(), namespace("a"), 1)
			if err == nil && len(found) != 1 {
				return fmt.Errorf("%d items, want 1", len(found))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { retriesPassTheLimiter(t, ask) })
	}
}

func retriesPassTheLimiter(t *testing.T, ask func(*Client) error) {
	var asked atomic.Int64
	server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/namespaces") {
			reply(w, http.StatusOK, &metav1.PartialObjectMetadataList{
				TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
				Items:    []metav1.PartialObjectMetadata{partial("a")}})
			return
		}
		reply(w, http.StatusOK, partial("a"))
	}}
	c := serve(t, server, clock.RealClock{}, 0)
	if _, err := c.Mapping(t.Context(), namespace("a").GroupVersionKind()); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := ask(c); err != nil {
		t.Fatal(err)
	}
	if c.limiter.until["/api"].Before(start) {
		t.Error("the limiter did not see the 429")
	}
	if got := c.RequestsByMethod()[http.MethodGet]; got != 3 {
		t.Errorf("discovery, the refused request and its repetition are 3 requests, counted %d", got)
	}
}

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
