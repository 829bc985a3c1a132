package store

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// unsized returns a frame of zeros whose header does not declare its size.
func unsized(t *testing.T, zeros int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for range zeros / len(block) {
		if _, err := w.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
