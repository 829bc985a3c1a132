package storehealth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestAnswered(t *testing.T) {
	var r reach
	for i, step := range []struct {
		err                  error
		changed, unreachable bool
	}{
		{errors.New("cut"), false, false}, // a single missing answer may be a delay
		{errors.New("cut"), true, true},
		{errors.New("cut"), false, true},
		{nil, true, false},
		{errors.New("cut"), false, false},
	} {
		if changed := r.answered(step.err); changed != step.changed || r.unreachable() != step.unreachable {
			t.Errorf("answer %d: changed %v, unreachable %v; want %v, %v", i, changed, r.unreachable(), step.changed, step.unreachable)
		}
	}
}

// TestWithReachable: a cut-off replica refuses at once the requests that it cannot answer, and
// closes their connections.
func TestWithReachable(t *testing.T) {
	cases := map[string]struct {
		reason      string
		unreachable bool
		verb, query string
		group       string
		code        int
		closes      bool
	}{
		"Well":      {reason: "nothing is different", verb: "create", group: "ours", code: http.StatusOK},
		"Write":     {reason: "it may be sent again, elsewhere", unreachable: true, verb: "create", group: "ours", code: http.StatusServiceUnavailable, closes: true},
		"Read":      {reason: "it would wait for etcd", unreachable: true, verb: "get", group: "ours", code: http.StatusServiceUnavailable, closes: true},
		"Cached":    {reason: "the cache is there", unreachable: true, verb: "list", query: "?resourceVersion=0", group: "ours", code: http.StatusOK, closes: true},
		"Watch":     {reason: "it goes on when etcd does", unreachable: true, verb: "watch", group: "ours", code: http.StatusOK, closes: true},
		"Elsewhere": {reason: "not of the store", unreachable: true, verb: "create", group: "others", code: http.StatusOK, closes: true},
	}
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			handler := WithReachable(next, func() bool { return tc.unreachable }, sets.New("ours"), codecs)
			r := httptest.NewRequest(http.MethodGet, "/"+tc.query, nil)
			r = r.WithContext(request.WithRequestInfo(r.Context(), &request.RequestInfo{IsResourceRequest: true, APIGroup: tc.group, APIVersion: "v1alpha1", Verb: tc.verb}))
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != tc.code || (w.Header().Get("Connection") == "close") != tc.closes {
				t.Errorf("%s: got %d, %v", tc.reason, w.Code, w.Header())
			}
			if tc.code != http.StatusOK && w.Header().Get("Retry-After") == "" {
				t.Error("clients are not told that they may try again")
			}
		})
	}
}

// TestWhileReachable: a cut-off replica stops run, and starts it again when etcd answers.
func TestWhileReachable(t *testing.T) {
	var unreachable atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		WhileReachable(ctx, unreachable.Load, func(ctx context.Context) {
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
		})
	}()
	wait := func(what string, signal <-chan struct{}) {
		t.Helper()
		select {
		case <-signal:
		case <-time.After(time.Minute):
			t.Fatalf("%s: nothing happens", what)
		}
	}
	wait("the beginning", began)
	unreachable.Store(true)
	wait("the end when cut off", ended)
	unreachable.Store(false)
	wait("the beginning behind that", began)
	cancel()
	wait("the end of all", ended)
	wait("the return", done)
}
