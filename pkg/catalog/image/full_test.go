package image

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestHostileFullSize sends hostile content of real size against the real limits, and measures its
// memory and disk use. It runs for a minute, so it needs FULL=1. TestHostile does the same with
// small limits.
func TestHostileFullSize(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("it takes a minute: FULL=1 runs it")
	}
	s := serve(t)
	for name, c := range map[string]struct {
		write func(w *tar.Writer) error
		want  string
	}{
		"a million files": {want: "more than 50000 files", write: func(w *tar.Writer) error {
			for i := range 1_000_000 {
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("f%d", i), Mode: 0o600}); err != nil {
					return err
				}
			}
			return nil
		}},
		"a million files elsewhere": {want: "more than 300000 entries", write: func(w *tar.Writer) error {
			for i := range 1_000_000 {
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("elsewhere/f%d", i), Mode: 0o600}); err != nil {
					return err
				}
			}
			return nil
		}},
		"a bomb of 5 GiB": {want: "more than 4294967296 bytes", write: func(w *tar.Writer) error {
			const size = 5 << 30
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "elsewhere/bomb", Mode: 0o600, Size: size}); err != nil {
				return err
			}
			_, err := io.CopyN(w, zeros{}, size)
			return err
		}},
		"a file of 1 GiB": {want: "a file may have at most 134217728", write: func(w *tar.Writer) error {
			const size = 1 << 30
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "f", Mode: 0o600, Size: size}); err != nil {
				return err
			}
			_, err := io.CopyN(w, zeros{}, size)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			content, diffID := packed(t, c.write)
			m := made{config: func(config *specs.Image) { config.RootFS.DiffIDs = []digest.Digest{diffID} }}
			if strings.Contains(name, "elsewhere") || strings.Contains(name, "bomb") {
				m.labels = map[string]string{catalogLabel: "configs"}
			}
			m.manifest = func(of *specs.Manifest) {
				layer := s.blob(content)
				layer.MediaType = specs.MediaTypeImageLayerGzip
				of.Layers = []specs.Descriptor{layer}
			}
			s.push("full", m)
			store := opened(t, t.TempDir(), s.options(new(atomic.Int64)))
			runtime.GC()
			peak, stop := watched()
			began := time.Now()
			_, err := store.Fetch(t.Context(), Request{Reference: s.host + "/ns/thing:full"})
			took := time.Since(began)
			stop()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v; %q is expected", err, c.want)
			}
			t.Logf("refused after %s, with %d MiB more on the heap, for %d bytes", took.Round(time.Millisecond), peak.Load()>>20, len(content))
			if peak.Load() > 64<<20 {
				t.Errorf("%d MiB on the heap; 64 are enough", peak.Load()>>20)
			}
			nothingLeft(t, store.root)
		})
	}
}

func packed(t *testing.T, write func(*tar.Writer) error) ([]byte, digest.Digest) {
	t.Helper()
	var b strings.Builder
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	w := tar.NewWriter(io.MultiWriter(z, sum))
	if err := write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String()), digest.NewDigest(digest.SHA256, sum)
}

// watched samples the growth of the heap.
func watched() (peak *atomic.Int64, stop func()) {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	peak, done, ended := new(atomic.Int64), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				peak.Store(max(peak.Load(), int64(now.HeapAlloc)-int64(before.HeapAlloc)))
			}
		}
	}()
	return peak, func() {
		close(done)
		<-ended
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
