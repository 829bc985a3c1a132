package fbc

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/penstock-project/penstock/pkg/text"
)

// Limits limit the resources for reading a catalog.
type Limits struct {
	// DocumentBytes limits one document. In JSON lines it limits a line. Real documents have half a
	// megabyte; bundles that contain their manifests have some megabytes.
	DocumentBytes int
	// Bytes limits the uncompressed size of all files together.
	Bytes int64
	// Documents limits the documents in all files together.
	Documents int
}

// DefaultLimits are 16 MiB per document, 1 GiB and a million documents. The largest catalogs have
// 55 MB and some thousand documents.
func DefaultLimits() Limits {
	return Limits{DocumentBytes: 16 << 20, Bytes: 1 << 30, Documents: 1_000_000}
}

// maxValues limits the values of one document. A decoder needs some hundred bytes per value, even
// for short ones. Real documents have about ten thousand values.
const maxValues = 2_000_000

// checkValues counts the separators of values, also within text, so the count is never too low.
func checkValues(document []byte) error {
	count := 0
	for _, mark := range []string{",", ":", "[", "{", "\n"} {
		count += bytes.Count(document, []byte(mark))
	}
	if count > maxValues {
		return fmt.Errorf("the document has more than %d values, which is the most that is read", maxValues)
	}
	return nil
}

// windowBytes limits the zstd window, and thereby the memory that is reserved for a file.
const windowBytes = 32 << 20

// Documents reads a catalog and calls found for each document. It is Read or ReadDirectory with
// bound arguments.
type Documents func(ctx context.Context, found func(*Document) error) error

// Read calls found for every document of a stream. The stream has JSON objects, or YAML documents
// separated by ---, and may be compressed with gzip or zstd. Read stops at the first error. It
// returns errors of found and of the context unchanged; other errors are of type Error.
func Read(ctx context.Context, from io.Reader, file string, limits Limits, found func(*Document) error) error {
	r := &reader{limits: limits, found: found}
	return r.file(ctx, from, file)
}

type reader struct {
	limits    Limits
	found     func(*Document) error
	bytes     int64
	documents int
}

func (r *reader) file(ctx context.Context, from io.Reader, file string) error {
	plain, done, err := uncompressed(from)
	if err != nil {
		return &Error{File: file, Err: err}
	}
	defer done()
	in := &countedReader{stopped: ctx.Err, from: plain, all: &r.bytes, most: r.limits.Bytes}
	documents, err := newDocuments(bufio.NewReaderSize(in, 64<<10), r.limits.DocumentBytes)
	if err != nil {
		return &Error{File: file, Err: err}
	}
	for {
		document := &Document{File: file}
		document.JSON, document.Line, err = documents.next()
		if json, isJSON := documents.(*jsonDocuments); isJSON && errors.Is(err, errYAML) {
			documents = &yamlDocuments{in: json.in, limit: json.limit, line: json.line - 1}
			document.JSON, document.Line, err = documents.next()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return &Error{File: file, Line: document.Line, Err: err}
		}
		if r.documents++; r.documents > r.limits.Documents {
			return &Error{File: file, Line: document.Line, Err: fmt.Errorf("the catalog has more than %d documents", r.limits.Documents)}
		}
		if err := document.identify(); err != nil {
			return err
		}
		if err := r.found(document); err != nil {
			return err
		}
	}
}

type documents interface {
	// next returns a document as JSON and its first line, or io.EOF.
	next() ([]byte, int, error)
}

func newDocuments(in *bufio.Reader, limit int) (documents, error) {
	for skipped := 1; ; skipped++ {
		begin, err := in.Peek(skipped)
		switch {
		case errors.Is(err, io.EOF):
			return &jsonDocuments{in: in, limit: limit, line: 1}, nil // only white space
		case errors.Is(err, bufio.ErrBufferFull):
			return &yamlDocuments{in: in, limit: limit}, nil
		case err != nil:
			return nil, err
		}
		switch begin[skipped-1] {
		case ' ', '\t', '\r', '\n':
		case '{':
			return &jsonDocuments{in: in, limit: limit, line: 1}, nil
		default:
			return &yamlDocuments{in: in, limit: limit}, nil
		}
	}
}

func uncompressed(from io.Reader) (io.Reader, func(), error) {
	in := bufio.NewReader(from)
	begin, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if text.HasMark(begin) {
		return transform.NewReader(in, unicode.BOMOverride(transform.Nop)), func() {}, nil
	}
	switch {
	case len(begin) >= 2 && begin[0] == 0x1f && begin[1] == 0x8b:
		plain, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("uncompressing gzip: %w", err)
		}
		return plain, func() {}, nil
	case string(begin) == "\x28\xb5\x2f\xfd":
		plain, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(windowBytes))
		if err != nil {
			return nil, nil, fmt.Errorf("uncompressing zstd: %w", err)
		}
		return plain, plain.Close, nil
	}
	return in, func() {}, nil
}

// countedReader fails when all files together are too large.
type countedReader struct {
	// stopped returns the reason to stop reading, or nil.
	stopped func() error
	from    io.Reader
	all     *int64
	most    int64
}

func (r *countedReader) Read(into []byte) (int, error) {
	if err := r.stopped(); err != nil {
		return 0, err
	}
	n, err := r.from.Read(into)
	if *r.all += int64(n); *r.all > r.most {
		return 0, fmt.Errorf("the catalog has more than %d bytes", r.most)
	}
	return n, err
}
