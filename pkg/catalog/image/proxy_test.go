package image

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// proxied is a proxy that forwards every host to one registry, and records the requested hosts.
type proxied struct {
	*httptest.Server
	mu    sync.Mutex
	hosts []string
}

func proxy(t *testing.T, to string) *proxied {
	t.Helper()
	p := &proxied{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
			return
		}
		p.mu.Lock()
		p.hosts = append(p.hosts, r.Host)
		p.mu.Unlock()
		registry, err := net.Dial("tcp", to)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer registry.Close()
		w.WriteHeader(http.StatusOK)
		client, began, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		go func() {
			// The server may have read the first bytes already.
			_, _ = io.Copy(registry, began)
			_ = registry.Close()
		}()
		_, _ = io.Copy(client, registry)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *proxied) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.hosts)
}

// TestProxy: HTTPS_PROXY and NO_PROXY apply, also with a custom CA for all registries. Go reads
// them once per process, so the test starts another process.
func TestProxy(t *testing.T) {
	s := serve(t)
	s.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: "1"})}})
	p := proxy(t, s.host)
	options := s.options(new(atomic.Int64))
	options.Registries.Certs, options.Registries.CAs = "", t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(options.Registries.CAs, "ca.crt"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"HTTPS_PROXY=" + p.URL, "NO_PROXY=registry.invalid", "https_proxy=", "no_proxy="}

	// The certificate of the registry is valid for this name, too.
	another(t, t.TempDir(), "example.com/ns/thing:v1", options, env...).fetchedDigest(t)
	if got := p.asked(); len(got) == 0 || got[0] != "example.com:443" {
		t.Errorf("the proxy was asked for %v; example.com:443 is expected", got)
	}

	before := len(p.asked())
	without := another(t, t.TempDir(), "registry.invalid/ns/thing:v1", options, env...)
	said, _ := io.ReadAll(without.out)
	if got := p.asked()[before:]; len(got) > 0 || !strings.Contains(string(said), "registry.invalid") {
		t.Errorf("the proxy was asked for %v, in spite of NO_PROXY: %s", got, said)
	}
}
