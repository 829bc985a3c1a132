package targetclient

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

type request struct {
	Method, Path, Query, ContentType, Body string
}

// fakeServer answers discovery of core/v1 and apps/v1, and all other requests with a function.
type fakeServer struct {
	mu       sync.Mutex
	requests []request
	answer   http.HandlerFunc
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.requests = append(f.requests, request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), string(body)})
	f.mu.Unlock()
	switch r.URL.Path {
	case "/api/v1":
		reply(w, http.StatusOK, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
			{Name: "namespaces", Kind: "Namespace"},
			{Name: "namespaces/finalize", Kind: "Namespace"},
		}})
	case "/apis/apps/v1":
		reply(w, http.StatusOK, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", Kind: "Deployment", Namespaced: true},
			{Name: "deployments/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true},
		}})
	default:
		if f.answer == nil {
			http.NotFound(w, r)
			return
		}
		f.answer(w, r)
	}
}

// seen returns the requests so far, without those below the prefixes of discovery.
func (f *fakeServer) seen() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []request
	for _, r := range f.requests {
		if r.Path != "/api/v1" && r.Path != "/apis/apps/v1" {
			out = append(out, r)
		}
	}
	return out
}

func (f *fakeServer) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if r.Path == path {
			n++
		}
	}
	return n
}

func reply(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// partial returns metadata as kube-apiserver does.
func partial(name string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "7"},
	}
}

func serve(t *testing.T, server *fakeServer, clk clock.Clock, limit int) *Client {
	t.Helper()
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	c, err := New(Options{Config: &rest.Config{Host: listener.URL}, Clock: clk, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
