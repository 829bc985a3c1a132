package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func packed(t *testing.T, sizes ...int64) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for i, size := range sizes {
		if err := archive.WriteHeader(&tar.Header{Name: fmt.Sprintf("image/%d", i), Typeflag: tar.TypeReg, Size: size, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(archive, zeros{}, size); err != nil {
			t.Fatal(err)
		}
	}
	for _, done := range []io.Closer{archive, compressed} {
		if err := done.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// TestReadLayoutBounds: untrusted archives are read within bounds, which also count skipped files.
func TestReadLayoutBounds(t *testing.T) {
	for name, c := range map[string]struct {
		content []byte
		largest int64
		// files is the number of files that are kept. want is a part of the expected error.
		files int
		want  string
	}{
		"small":         {content: packed(t, 1, 2, 3), largest: 1 << 20, files: 3},
		"one large":     {content: packed(t, 1, largestText+1), largest: largestText * 2, files: 1},
		"exactly":       {content: packed(t, 0), largest: 512 + 1024, files: 1},
		"skipped bomb":  {content: packed(t, 1, largestText*3), largest: largestText * 2, want: "too large"},
		"many kept":     {content: packed(t, largestText, largestText, largestText, largestText, 1), largest: 1 << 40, want: "its manifests have more than"},
		"many files":    {content: packed(t, make([]int64, mostFiles+1)...), largest: 1 << 40, want: "more than 10000 files"},
		"no gzip":       {content: []byte("PK"), largest: 1, want: "unexpected EOF"},
		"cut off":       {content: packed(t, 1<<20)[:200], largest: 1 << 30, want: "unexpected EOF"},
		"bound at once": {content: packed(t, 1), largest: 511, want: "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := readLayout(bytes.NewReader(c.content), c.largest)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("found %v, want an error with %q", err, c.want)
			}
			if len(found) != c.files {
				t.Errorf("%d files are kept, want %d", len(found), c.files)
			}
		})
	}
}
