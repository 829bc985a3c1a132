//go:build integration

package rollout_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// toll is a proxy between a process and kube-apiserver. It counts writes, and kills the process
// after a chosen write. The process never gets the answer.
type toll struct {
	next       http.RoundTripper
	kubeconfig string

	mu    sync.Mutex
	armed bool
	left  int
	kill  func()
	// last is the request after which the process was killed.
	last string
}

// newToll starts a proxy to the cluster, without TLS.
func newToll(t *testing.T, config *rest.Config) *toll {
	t.Helper()
	upstream, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	gate := &toll{next: transport}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Host = ""
		},
		Transport: gate,
		// A negative interval flushes watch events at once.
		FlushInterval: -1,
		// The client dies often, so its errors are not logged.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	gate.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	file := clientcmdapi.NewConfig()
	file.Clusters["toll"] = &clientcmdapi.Cluster{Server: server.URL}
	file.Contexts["toll"] = &clientcmdapi.Context{Cluster: "toll"}
	file.CurrentContext = "toll"
	if err := clientcmd.WriteToFile(*file, gate.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return gate
}

// Kubeconfig returns the path of a kubeconfig for the proxy.
func (g *toll) Kubeconfig() string { return g.kubeconfig }

// arm kills after the k-th write from now on, counted from 1.
func (g *toll) arm(k int, kill func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed, g.left, g.kill, g.last = true, k, kill, ""
}

// disarm returns the request after which the process was killed, or "".
func (g *toll) disarm() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = false
	return g.last
}

func (g *toll) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := g.next.RoundTrip(r)
	if err != nil || !changes(r) {
		return response, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.armed {
		return response, nil
	}
	if g.left--; g.left > 0 {
		return response, nil
	}
	g.armed, g.last = false, fmt.Sprintf("%s %s (%d)", r.Method, r.URL.Path, response.StatusCode)
	g.kill()
	response.Body.Close()
	return nil, os.ErrProcessDone
}

// changes reports whether a request is a write. Dry-runs, reviews by POST, events and leases do not
// count.
func changes(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	for _, part := range []string{"/events", "/leases", "/authentication.k8s.io/", "/authorization.k8s.io/"} {
		if strings.Contains(r.URL.Path, part) {
			return false
		}
	}
	return !r.URL.Query().Has("dryRun")
}
