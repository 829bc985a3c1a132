package targetclient

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMappingCosts(t *testing.T) {
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	namespace := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	missing := schema.GroupVersionKind{Version: "v1", Kind: "Nothing"}
	elsewhere := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Nothing"}
	scale := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Scale"}

	ask := func(kinds ...schema.GroupVersionKind) func(*Client, *clocktesting.FakeClock) []bool {
		return func(c *Client, _ *clocktesting.FakeClock) []bool {
			var known []bool
			for _, kind := range kinds {
				_, err := c.Mapping(t.Context(), kind)
				known = append(known, err == nil)
			}
			return known
		}
	}
	cases := map[string]struct {
		reason string
		do     func(*Client, *clocktesting.FakeClock) []bool
		want   []bool
		cost   int64
	}{
		"OneGroupVersion": {"one request serves all kinds of a group version", ask(configMap, namespace, configMap), []bool{true, true, true}, 1},
		"MissingKind":     {"a kind that is not there is not asked for again at once", ask(missing, missing, missing), []bool{false, false, false}, 1},
		"MissingGroup":    {"nor is a group", ask(elsewhere, elsewhere), []bool{false, false}, 1},
		"Subresource":     {"the kind of a subresource is no kind of object", ask(scale), []bool{false}, 1},
		"MissingLater": {"it may have come after a while", func(c *Client, clk *clocktesting.FakeClock) []bool {
			first := ask(missing)(c, clk)
			clk.Step(unknownFor + time.Second)
			return append(first, ask(missing)(c, clk)...)
		}, []bool{false, false}, 2},
		"Invalidated": {"a caller may know better", func(c *Client, clk *clocktesting.FakeClock) []bool {
			first := ask(configMap, missing)(c, clk)
			c.Invalidate()
			return append(first, ask(configMap, missing)(c, clk)...)
		}, []bool{true, false, true, false}, 4},
		"Discover": {"Discover always asks, and what it learns is for all", func(c *Client, clk *clocktesting.FakeClock) []bool {
			_, first := c.Discover(t.Context(), configMap)
			_, second := c.Discover(t.Context(), configMap)
			return append([]bool{first == nil, second == nil}, ask(namespace)(c, clk)...)
		}, []bool{true, true, true}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(time.Unix(1e9, 0))
			c := serve(t, &fakeServer{}, clk, 0)
			got := tc.do(c, clk)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: known (-want +got):\n%s", tc.reason, diff)
			}
			if c.Requests() != tc.cost {
				t.Errorf("%s: want %d requests, sent %d: %v", tc.reason, tc.cost, c.Requests(), c.RequestsByMethod())
			}
		})
	}
}

func TestMappingAnswers(t *testing.T) {
	c := serve(t, &fakeServer{}, clocktesting.NewFakeClock(time.Unix(1e9, 0)), 0)
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	got, err := c.Mapping(t.Context(), deployment)
	if err != nil {
		t.Fatal(err)
	}
	want := &meta.RESTMapping{
		Resource:         schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		GroupVersionKind: deployment,
		Scope:            meta.RESTScopeNamespace,
	}
	if diff := cmp.Diff(want.Resource, got.Resource); diff != "" || got.Scope.Name() != want.Scope.Name() || got.GroupVersionKind != deployment {
		t.Errorf("want %v, got %v", want, got)
	}

	_, err = c.Mapping(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Nothing"})
	var unknown *KindUnknownError
	if !errors.As(err, &unknown) || !meta.IsNoMatchError(err) {
		t.Errorf("want a KindUnknownError that is a NoMatchError, got %v", err)
	}
}

// TestConcurrentQuestionsAreOneRequest: at a cold start, all workers ask for the same group version
// at once.
func TestConcurrentQuestionsAreOneRequest(t *testing.T) {
	server := &fakeServer{}
	c := serve(t, server, clocktesting.NewFakeClock(time.Unix(1e9, 0)), 1)
	// Hold the only slot, so that all callers wait for the same request.
	var arrived, done sync.WaitGroup
	release := occupy(c)
	for range 8 {
		arrived.Add(1)
		done.Go(func() {
			arrived.Done()
			if _, err := c.Mapping(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}); err != nil {
				t.Error(err)
			}
		})
	}
	arrived.Wait()
	release()
	done.Wait()
	if n := server.count("/api/v1"); n > 2 {
		// Two requests are allowed: a goroutine may have checked the cache before the first request
		// filled it.
		t.Errorf("8 concurrent questions made %d requests", n)
	}
}
