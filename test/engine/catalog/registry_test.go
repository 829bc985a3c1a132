//go:build integration

package catalog_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	versioned "github.com/opencontainers/image-spec/specs-go"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/penstock-project/penstock/pkg/catalog/image"
)

// served is a registry on loopback, with TLS.
type served struct {
	*httptest.Server
	host string
	// requests counts all requests. blobs counts the requests for blobs.
	requests, blobs atomic.Int64
	// hook can answer a request in place of the registry.
	hook atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
	// user and password, if set, are required for requests.
	user, password string
}

func serve(t *testing.T, user, password string) *served {
	t.Helper()
	s := &served{user: user, password: password}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("User-Agent") == pushing {
			inner.ServeHTTP(w, r)
			return
		}
		s.requests.Add(1)
		if name, password, _ := r.BasicAuth(); s.user != "" && (name != s.user || password != s.password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.Contains(r.URL.Path, "/blobs/") {
			s.blobs.Add(1)
		}
		if hook := s.hook.Load(); hook != nil && (*hook)(w, r) {
			return
		}
		inner.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	s.host = strings.TrimPrefix(s.URL, "https://")
	return s
}

func (s *served) answer(hook func(w http.ResponseWriter, r *http.Request) bool) {
	s.hook.Store(&hook)
}

// pushing marks the requests of the test itself.
const pushing = "the-test"

// push pushes a catalog to repository:tag and returns its digest. A label can replace the default
// label that names the catalog's folder.
func (s *served) push(t *testing.T, reference, content string, labels ...string) string {
	t.Helper()
	label := "operators.operatorframework.io.index.configs.v1"
	if len(labels) > 0 {
		label = labels[0]
	}
	var layer bytes.Buffer
	out := tar.NewWriter(&layer)
	if err := out.WriteHeader(&tar.Header{Name: "configs/catalog.yaml", Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, content); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	repository, tag, _ := strings.Cut(reference, ":")
	config := specs.Image{
		Platform: specs.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Config:   specs.ImageConfig{Labels: map[string]string{label: "/configs"}},
		RootFS:   specs.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer.Bytes())}},
	}
	manifest := specs.Manifest{Versioned: versioned.Versioned{SchemaVersion: 2}, MediaType: specs.MediaTypeImageManifest,
		Config: s.blob(t, repository, specs.MediaTypeImageConfig, encoded(t, config)),
		Layers: []specs.Descriptor{s.blob(t, repository, specs.MediaTypeImageLayer, layer.Bytes())},
	}
	body := encoded(t, manifest)
	s.put(t, "/v2/"+repository+"/manifests/"+tag, specs.MediaTypeImageManifest, body)
	pinned := digest.FromBytes(body)
	s.put(t, "/v2/"+repository+"/manifests/"+pinned.String(), specs.MediaTypeImageManifest, body)
	return pinned.String()
}

func encoded(t *testing.T, value any) []byte {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (s *served) blob(t *testing.T, repository, mediaType string, content []byte) specs.Descriptor {
	t.Helper()
	of := digest.FromBytes(content)
	s.send(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+of.String(), mediaType, content)
	return specs.Descriptor{MediaType: mediaType, Digest: of, Size: int64(len(content))}
}

func (s *served) put(t *testing.T, path, mediaType string, body []byte) {
	t.Helper()
	s.send(t, http.MethodPut, path, mediaType, body)
}

func (s *served) send(t *testing.T, method, path, mediaType string, body []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	request.Header.Set("User-Agent", pushing)
	answer, err := s.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
}

// certs returns a folder with certificates of the registries.
func certs(t *testing.T, registries ...*served) string {
	t.Helper()
	dir := t.TempDir()
	for _, s := range registries {
		of := filepath.Join(dir, s.host)
		if err := os.Mkdir(of, 0o700); err != nil {
			t.Fatal(err)
		}
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		if err := os.WriteFile(filepath.Join(of, "ca.crt"), block, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pulls returns image options that trust the test's registries.
func pulls(t *testing.T, registries ...*served) image.Options {
	options := image.DefaultOptions()
	options.Registries.Certs = certs(t, registries...)
	options.Backoff.Duration /= 50
	return options
}
