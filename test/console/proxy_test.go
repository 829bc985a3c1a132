package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// proxy forwards requests to a cluster. Its credentials can expire.
type proxy struct {
	server     *httptest.Server
	kubeconfig string

	mu      sync.Mutex
	expired bool
	// since counts the requests since the credentials last expired or were renewed. total counts
	// all requests.
	since, total int
}

func newProxy(t *testing.T, config *rest.Config) *proxy {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, forward.FlushInterval = transport, -1
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.refuses() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { p.server.CloseClientConnections(); p.server.Close() })
	p.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: proxied, clusters: [{name: x, cluster: {server: %q}}], contexts: [{name: proxied, context: {cluster: x, user: ""}}]}`, p.server.URL)
	if err := os.WriteFile(p.kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *proxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total++
	if p.expired {
		p.since++
	}
	return p.expired
}

// expire expires the credentials and closes the connections with their watches.
func (p *proxy) expire() {
	p.set(true)
	p.server.CloseClientConnections()
}

func (p *proxy) renew() { p.set(false) }

func (p *proxy) set(expired bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expired, p.since = expired, 0
}

func (p *proxy) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.since
}

// all returns the number of all requests.
func (p *proxy) all() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}
