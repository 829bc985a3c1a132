package store

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Format is a kind of record and its version. A record begins with the magic of its kind and a byte
// with the version. So a record of a newer Penstock is recognised before its content is read.
type Format struct {
	// Kind is the name of the kind for users, such as "inventory".
	Kind string
	// Magic is the beginning of every record of the kind.
	Magic string
	// Version is the written version, and the highest readable version.
	Version byte
	// Limit bounds the content of a record in bytes, before compression (see Seal). A larger record
	// is not written, so every written record can be read in a known amount of memory.
	Limit int
	// OldLimit is the higher limit of an earlier Penstock. Records up to this size can be read.
	OldLimit int
}

// ErrTooLarge reports that compressed data is larger than the limit, or than its declared size.
var ErrTooLarge = errors.New("decompressed data exceeds its limit")

// TooLargeError reports that a record would exceed the limit of its kind. Nothing was written.
type TooLargeError struct {
	Kind string
	// Bytes and Limit are the size of the content and the allowed size.
	Bytes, Limit int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the %s has %d bytes, %d are allowed", e.Kind, e.Bytes, e.Limit)
}

// ChainVersionRecord returns the record that is written with every change of a chain's revisions:
// only magic and version. Its content has no meaning; only its write counts.
func ChainVersionRecord() string { return "PKJ\x01" }

// FormatError reports a record in a version that this Penstock does not support. It is not damaged:
// the Penstock that wrote it can read it.
type FormatError struct {
	Kind, Key    string
	Found, Known int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s at %s has format %d, written by a newer Penstock; this one reads formats 1 to %d: run the newer one", e.Kind, e.Key, e.Found, e.Known)
}

// DamagedError reports a damaged record. Its content is unknown, and it must not count as missing
// or empty.
type DamagedError struct {
	Kind, Key string
	Err       error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s at %s is damaged: %v", e.Kind, e.Key, e.Err)
}

// Unwrap returns the underlying error.
func (e *DamagedError) Unwrap() error { return e.Err }

// Wrap returns a record with an uncompressed body. A body beyond the limit is a *TooLargeError.
func (f Format) Wrap(body []byte) ([]byte, error) {
	if len(body) > f.Limit {
		return nil, &TooLargeError{Kind: f.Kind, Bytes: len(body), Limit: f.Limit}
	}
	record := make([]byte, 0, len(f.Magic)+1+len(body))
	record = append(record, f.Magic...)
	record = append(record, f.Version)
	return append(record, body...), nil
}

// Seal returns a record with compressed content. Content beyond the limit is a *TooLargeError. Open
// can read every record that Seal returns.
func (f Format) Seal(content []byte) ([]byte, error) {
	if len(content) > f.Limit {
		return nil, &TooLargeError{Kind: f.Kind, Bytes: len(content), Limit: f.Limit}
	}
	frame, err := Compress(content)
	if err != nil {
		return nil, err
	}
	record := make([]byte, 0, len(f.Magic)+1+len(frame))
	record = append(record, f.Magic...)
	record = append(record, f.Version)
	return append(record, frame...), nil
}

// Open returns the content of a record from Seal. It takes at most the memory of the limit. The
// errors are the same as those of Unwrap; content beyond the limit is damage.
func (f Format) Open(key string, record []byte) ([]byte, error) {
	frame, err := f.Unwrap(key, record)
	if err != nil {
		return nil, err
	}
	content, err := Decompress(frame, max(f.Limit, f.OldLimit))
	if err != nil {
		return nil, f.Damaged(key, err)
	}
	return content, nil
}

// Unwrap returns the body of a record, which shares its memory. The key is for errors: a
// *FormatError for a newer version, a *DamagedError for other bytes.
func (f Format) Unwrap(key string, record []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(record, []byte(f.Magic))
	if !ok || len(rest) == 0 || rest[0] == 0 {
		return nil, f.Damaged(key, fmt.Errorf("its first bytes are %q, want %q and a version", record[:min(len(record), len(f.Magic)+1)], f.Magic))
	}
	if rest[0] > f.Version {
		return nil, &FormatError{Kind: f.Kind, Key: key, Found: int(rest[0]), Known: int(f.Version)}
	}
	return rest[1:], nil
}

// Damaged returns the error for a record of this kind that cannot be decoded.
func (f Format) Damaged(key string, err error) error {
	return &DamagedError{Kind: f.Kind, Key: key, Err: err}
}

// Compress returns one zstd frame with a checksum. In one version of Penstock, the same data gives
// the same frame; readers must not depend on it across versions.
func Compress(data []byte) ([]byte, error) {
	frame, err := encoders.encode(data)
	if err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return frame, nil
}

// encoders are the unused encoders of Compress, and decoders the unused decoders of Decompress; see
// encoderPool.
var (
	encoders = &encoderPool{}
	decoders sync.Pool
)

// Decompress returns the content of a zstd frame of Compress. It uses memory for at most limit
// bytes of content, and returns ErrTooLarge for larger content.
func Decompress(frame []byte, limit int) ([]byte, error) {
	size, err := contentSize(frame, limit)
	if err != nil {
		return nil, err
	}
	decoder, ok := decoders.Get().(*zstd.Decoder)
	if !ok {
		// The capacity of the output buffer is the limit. A decoder that fills a buffer allocates
		// no window.
		decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
	}
	data, err := decoder.DecodeAll(frame, make([]byte, 0, size))
	if size <= maxKept {
		decoders.Put(decoder)
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return nil, fmt.Errorf("more than the %d bytes that the frame declares: %w", size, ErrTooLarge)
	}
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	return data, nil
}

// contentSize returns the size of a zstd frame's content, from its header. A size above limit is an
// error.
func contentSize(frame []byte, limit int) (int, error) {
	var header zstd.Header
	if err := header.Decode(frame); err != nil {
		return 0, fmt.Errorf("reading the header of a zstd frame: %w", err)
	}
	if header.Skippable || !header.HasFCS {
		return 0, errors.New("the zstd frame does not say how large its content is")
	}
	if header.FrameContentSize > uint64(limit) {
		return 0, fmt.Errorf("%d bytes, %d allowed: %w", header.FrameContentSize, limit, ErrTooLarge)
	}
	return int(header.FrameContentSize), nil
}
