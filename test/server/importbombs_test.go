//go:build integration

package server_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/archive"
)

const (
	// importTime bounds the time until the refusal of an import.
	importTime = 15 * time.Second
	// importMemory bounds the memory of all imports together. Parts of an archive have up to 20
	// MiB, and parsing keeps several copies.
	importMemory = 256 << 20
)

// importBombs: an archive that would expand to a huge size is refused quickly, and without using
// that much memory.
func (d door) importBombs() {
	manifests := func(value string) []byte {
		line := fmt.Appendf(nil, `{"digest":"sha256:%064d","manifest":{"a":%s}}`+"\n", 0, value)
		return rewritten(d.t, map[string][]byte{"chains/bombed/1/manifests.jsonl": line})
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	bombs := map[string][]byte{
		"Gzip":          squeezed(d.t, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestSpeed) }, make([]byte, 256<<20)),
		"Zeros":         rewritten(d.t, map[string][]byte{"chains/bombed/1/manifests.jsonl": make([]byte, 256<<20)}),
		"Values":        manifests("[0" + strings.Repeat(",0", 2<<20) + "]"),
		"Nested":        manifests("[{}" + strings.Repeat(",{}", 1<<19) + "]"),
		"DeepManifest":  manifests(deep),
		"DeepChain":     rewritten(d.t, map[string][]byte{"chains/bombed/chain.json": []byte(`{"name":"bombed","history":` + deep + `}`)}),
		"DeepSpec":      rewritten(d.t, map[string][]byte{"chains/bombed/1/revision.json": []byte(`{"number":1,"createdAt":"2026-01-01T00:00:00Z","spec":` + deep + `}`)}),
		"EntryHeaders":  headerBomb(d.t),
		"NothingInside": squeezed(d.t, zstdWriter, make([]byte, 256<<20)),
	}
	client, err := rest.HTTPClientFor(d.Config())
	if err != nil {
		d.t.Fatal(err)
	}
	grown := d.server.PeakMemory(d.t)
	for name, bomb := range bombs {
		d.t.Run(name, func(t *testing.T) {
			if len(bomb) > 3<<20 {
				t.Fatalf("the bomb has %d bytes", len(bomb))
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				d.Config().Host+"/apis/olm.operatorframework.io/v1alpha1/revisionhistories/bombed/import", bytes.NewReader(bomb))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/zstd")
			if name == "Gzip" {
				request.Header.Set("Content-Encoding", "gzip")
			}
			start := time.Now()
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			text, err := io.ReadAll(response.Body)
			if took := time.Since(start); err != nil || response.StatusCode != http.StatusBadRequest || took > importTime {
				t.Errorf("got %d after %s, want %d within %s: %.300s (%v)", response.StatusCode, took, http.StatusBadRequest, importTime, text, err)
			}
			t.Logf("%d bytes: %s: %.300s", len(bomb), time.Since(start), text)
		})
	}
	if got := grown(); got > importMemory {
		d.t.Errorf("the server took %d bytes more, want %d at most", got, importMemory)
	} else {
		d.t.Logf("the server took %d MiB more", got>>20)
	}
	if out := d.MustKubectl("get", "cer", "-o", "name"); strings.Contains(out, "bombed") {
		d.t.Errorf("an extension was imported:\n%s", out)
	}
}

func zstdWriter(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
}

func squeezed(t *testing.T, writer func(io.Writer) (io.WriteCloser, error), text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := writer(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// rewritten returns an archive of one revision with changed contents of entries. Its checksums are
// wrong, which a reader notices only at the end.
func rewritten(t *testing.T, contents map[string][]byte) []byte {
	t.Helper()
	var plain bytes.Buffer
	pack := tar.NewWriter(&plain)
	eachEntry(t, func(name string, content []byte) {
		if other, found := contents[name]; found {
			content = other
			delete(contents, name)
		}
		if err := pack.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := pack.Write(content); err != nil {
			t.Fatal(err)
		}
	})
	if err := pack.Close(); err != nil {
		t.Fatal(err)
	}
	for name := range contents {
		t.Fatalf("the archive has no entry %s", name)
	}
	return squeezed(t, zstdWriter, plain.Bytes())
}

// eachEntry calls do for every entry of an archive of one revision.
func eachEntry(t *testing.T, do func(name string, content []byte)) {
	t.Helper()
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	object, err := manifest.Digester{SecretKey: make([]byte, 32)}.FromJSON([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := archive.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		w.Chain(archive.Chain{Name: "bombed", Revisions: []int64{1}, Highest: 1, History: []archive.Row{{Revision: 1, CreatedAt: then}}}),
		w.Revision(archive.Revision{Number: 1, CreatedAt: then, Spec: json.RawMessage(`{"revision":1}`)}, []manifest.Object{object}),
		w.Close())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := zstd.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	entries := tar.NewReader(plain)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		do(header.Name, content)
	}
}

// headerBomb returns an archive with a GiB of headers before its first entry. The library itself
// cannot write such an archive.
func headerBomb(t *testing.T) []byte {
	t.Helper()
	record := fmt.Sprintf("%d comment=%s\n", 1<<20-512, strings.Repeat("x", 1<<20-512-len("1048064 comment=\n")))
	block := make([]byte, 512)
	copy(block, "x")
	copy(block[100:], "0000644\x000000000\x000000000\x00")
	copy(block[124:], fmt.Sprintf("%011o\x0000000000000\x00        ", len(record)))
	block[156] = tar.TypeXHeader
	copy(block[257:], "ustar\x0000")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
	return squeezed(t, zstdWriter, bytes.Repeat(append(block, record...), 256))
}
