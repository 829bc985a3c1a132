package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	versioned "github.com/opencontainers/image-spec/specs-go"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// served is a registry in this process, with TLS. Images are stored as bytes, so that tests can
// serve invalid ones.
type served struct {
	*httptest.Server
	t    *testing.T
	host string
	// requests counts requests for blobs. intercept may answer instead of the registry.
	requests  atomic.Int64
	intercept atomic.Pointer[func(http.ResponseWriter, *http.Request, http.Handler) bool]
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{t: t}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			s.requests.Add(1)
		}
		if f := s.intercept.Load(); f != nil && (*f)(w, r, inner) {
			return
		}
		inner.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	s.host = strings.TrimPrefix(s.URL, "https://")
	return s
}

func (s *served) answer(f func(http.ResponseWriter, *http.Request, http.Handler) bool) {
	s.intercept.Store(&f)
}

func (s *served) put(method, path, mediaType string, body []byte) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	response, err := s.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		s.t.Fatalf("%s %s: %s", method, path, response.Status)
	}
}

func (s *served) blob(content []byte) specs.Descriptor {
	s.t.Helper()
	d := digest.FromBytes(content)
	s.put(http.MethodPost, "/v2/ns/thing/blobs/uploads/?digest="+d.String(), "application/octet-stream", content)
	return specs.Descriptor{Digest: d, Size: int64(len(content))}
}

// made is an image before its push. Tests change it to make it invalid.
type made struct {
	labels   map[string]string
	layers   [][]byte
	config   func(*specs.Image)
	manifest func(*specs.Manifest)
}

func (s *served) push(tag string, m made) digest.Digest {
	s.t.Helper()
	config := specs.Image{Config: specs.ImageConfig{Labels: m.labels}}
	result := specs.Manifest{Versioned: versioned.Versioned{SchemaVersion: 2}, MediaType: specs.MediaTypeImageManifest}
	for _, layer := range m.layers {
		of := s.blob(gzipped(s.t, layer))
		of.MediaType = specs.MediaTypeImageLayerGzip
		result.Layers = append(result.Layers, of)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digest.FromBytes(layer))
	}
	if m.config != nil {
		m.config(&config)
	}
	content, err := json.Marshal(config)
	if err != nil {
		s.t.Fatal(err)
	}
	result.Config = s.blob(content)
	result.Config.MediaType = specs.MediaTypeImageConfig
	if m.manifest != nil {
		m.manifest(&result)
	}
	if content, err = json.Marshal(result); err != nil {
		s.t.Fatal(err)
	}
	s.put(http.MethodPut, "/v2/ns/thing/manifests/"+tag, result.MediaType, content)
	return digest.FromBytes(content)
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// entry is one entry of a layer; by default a file.
type entry struct {
	name, content, link string
	kind                byte
	mode                int64
}

func layer(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: 0o644 | e.mode, Size: int64(len(e.content))}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type instant struct {
	clock.RealClock
	waits *atomic.Int64
}

func (i instant) After(time.Duration) <-chan time.Time {
	i.waits.Add(1)
	c := make(chan time.Time, 1)
	c <- time.Time{}
	return c
}

// trusted adds the registry's CA to a folder for --certs-dir.
func (s *served) trusted(certs string) {
	s.t.Helper()
	folder := filepath.Join(certs, s.host)
	if err := os.Mkdir(folder, 0o700); err != nil {
		s.t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(folder, "ca.crt"), ca, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *served) options(waits *atomic.Int64) Options {
	s.t.Helper()
	certs := s.t.TempDir()
	s.trusted(certs)
	options := DefaultOptions()
	options.Registries.Certs = certs
	options.Clock = instant{waits: waits}
	options.Backoff = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 3}
	return options
}

func opened(t *testing.T, root string, options Options) *Store {
	t.Helper()
	s, err := Open(root, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fetched(ctx context.Context, t *testing.T, s *Store, ref string) *Image {
	t.Helper()
	i, err := s.Fetch(ctx, Request{Reference: ref})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}
