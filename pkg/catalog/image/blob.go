package image

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
)

// window limits the memory for a zstd frame, in bytes.
const window = 32 << 20

// blob reads a blob from a registry, and checks its size and digest against the manifest. It reads
// at most one extra byte.
type blob struct {
	from     io.Reader
	left     int64
	size     int64
	verifier digest.Verifier
	// failed is the error that ended the read early. The reading library may wrap it as another
	// error.
	failed error
}

func newBlob(from io.Reader, size int64, want digest.Digest) *blob {
	return &blob{from: from, left: size, size: size, verifier: want.Verifier()}
}

func (b *blob) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.from.Read(p)
	_, _ = b.verifier.Write(p[:n])
	b.left -= int64(n)
	switch {
	case b.left < 0:
		b.failed = refuse("", "it has more than the %d bytes that the manifest says", b.size)
	case err == io.EOF && b.left > 0:
		b.failed = refuse("", "it has %d bytes, and the manifest says %d", b.size-b.left, b.size)
	case err != nil && err != io.EOF:
		b.failed = &outage{fmt.Errorf("after %d of %d bytes: %w", b.size-b.left, b.size, err)}
	default:
		return n, err
	}
	return n, b.failed
}

func (b *blob) finish() error {
	if _, err := io.Copy(io.Discard, b); err != nil {
		return err
	}
	if !b.verifier.Verified() {
		return refuse("", "its content has another digest")
	}
	return nil
}

// decompress detects gzip and zstd by content, because media types are often wrong.
func decompress(from io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReader(from)
	start, _ := buffered.Peek(4)
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(buffered)
		return r, func() {}, err
	case bytes.Equal(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		r, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	}
	return buffered, func() {}, nil
}

// bounded limits the total decompressed size of an image's layers.
type bounded struct {
	from   io.Reader
	used   *int64
	limit  int64
	failed error
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if *b.used += int64(n); *b.used > b.limit {
		b.failed = refuse("", "decompressed, the layers of the image have more than %d bytes", b.limit)
		return 0, b.failed
	}
	return n, err
}

// verified compares the decompressed layer with its digest in the configuration.
type verified struct {
	from     io.Reader
	verifier digest.Verifier
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	_, _ = v.verifier.Write(p[:n])
	return n, err
}

func (v *verified) finish() error {
	if _, err := io.Copy(io.Discard, v); err != nil {
		return &Refused{Reason: "it cannot be decompressed", Err: err}
	}
	if !v.verifier.Verified() {
		return refuse("", "decompressed, its content has another digest than the configuration says")
	}
	return nil
}
