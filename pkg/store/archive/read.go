package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// FormatError reports an archive in a version that this Penstock does not support.
type FormatError struct{ Found int }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the archive has format %d, written by a newer Penstock; this one reads formats 1 to %d: use the newer one", e.Found, Format)
}

// errNone is the error for a file that is no archive.
var errNone = errors.New("this is not a Penstock archive")

// Item is the result of Next: a chain, or the next revision of the last chain.
type Item struct {
	// Chain is set at the beginning of a chain.
	Chain *Chain
	// Revision is set for a revision. Objects are its manifests in rollout order, each content
	// once. Digests of Secrets use the key of the original store.
	Revision *Revision
	Objects  []manifest.Object
}

// Reader reads an untrusted archive.
type Reader struct {
	decompressor *zstd.Decoder
	tar          *tar.Reader
	rest         *bounded
	sums         bytes.Buffer
	limits       Limits
	order        order
	digest       string
	err          error
}

// NewReader begins to read an archive. The caller must close the Reader.
func NewReader(r io.Reader, limits Limits) (*Reader, error) {
	decompressor, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("reading an archive: %w", err)
	}
	rest := &bounded{from: decompressor, left: limits.Bytes, limit: limits.Bytes}
	in := &Reader{decompressor: decompressor, tar: tar.NewReader(rest), rest: rest, limits: limits}
	if err := in.begin(); err != nil {
		in.Close()
		return nil, fmt.Errorf("reading an archive: %w", err)
	}
	return in, nil
}

// Close frees the memory of the Reader.
func (r *Reader) Close() { r.decompressor.Close() }

// Next returns the next item, or io.EOF when the archive is complete and all checksums match. After
// an error all further calls fail. Next ends with its context, even while it only parses data in
// memory.
func (r *Reader) Next(ctx context.Context) (Item, error) {
	if r.err != nil {
		return Item{}, r.err
	}
	item, err := r.next(ctx)
	switch {
	case err != nil:
		// None of these errors must count as the end of the archive.
		r.err = fmt.Errorf("reading an archive: %w", cut(err))
	case r.digest != "":
		r.err = io.EOF
	}
	return item, r.err
}

// Digest identifies the content of the archive, after Next has returned io.EOF.
func (r *Reader) Digest() string { return r.digest }

func (r *Reader) next(ctx context.Context) (Item, error) {
	if err := ctx.Err(); err != nil {
		return Item{}, err
	}
	if len(r.order.left) > 0 {
		return r.revision(ctx, r.order.left[0])
	}
	entry, err := r.header()
	if err != nil {
		return Item{}, cut(err)
	}
	if entry.Name == sumsName {
		return Item{}, r.end(entry)
	}
	return r.chain(entry)
}

func (r *Reader) begin() error {
	entry, err := r.header()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return cut(err)
	}
	if errors.Is(err, errHeaders) {
		return err
	}
	if err != nil || entry.Name != headerName {
		return errNone
	}
	data, err := r.data(entry, r.limits.RecordBytes)
	if err != nil {
		return err
	}
	// A newer format may have other fields, so the format number is checked first.
	var found header
	if err := json.Unmarshal(data, &found); err != nil || found.Format < 1 {
		return errNone
	}
	if found.Format > Format {
		return &FormatError{Found: found.Format}
	}
	return nil
}

func (r *Reader) chain(entry *tar.Header) (Item, error) {
	parts := strings.Split(entry.Name, "/")
	if len(parts) != 3 || entry.Name != chainPath(parts[1]) {
		return Item{}, fmt.Errorf("the entry %.200q is not allowed at this place of an archive", entry.Name)
	}
	chain := &Chain{}
	if err := r.record(entry, chain); err != nil {
		return Item{}, err
	}
	if chain.Name != parts[1] {
		return Item{}, fmt.Errorf("%s is about extension %.80q", entry.Name, chain.Name)
	}
	if err := chain.validate(r.limits); err != nil {
		return Item{}, err
	}
	return Item{Chain: chain}, r.order.chain(*chain, r.limits)
}

func (r *Reader) revision(ctx context.Context, number int64) (Item, error) {
	entry, err := r.expect(revisionPath(r.order.name, number))
	if err != nil {
		return Item{}, err
	}
	revision := &Revision{}
	if err := r.record(entry, revision); err != nil {
		return Item{}, err
	}
	if revision.Number != number {
		return Item{}, fmt.Errorf("%s is about number %d", entry.Name, revision.Number)
	}
	if err := revision.validate(); err != nil {
		return Item{}, fmt.Errorf("%s: %w", entry.Name, err)
	}
	if entry, err = r.expect(manifestsPath(r.order.name, number)); err != nil {
		return Item{}, err
	}
	data, err := r.data(entry, r.limits.ManifestBytes)
	if err != nil {
		return Item{}, err
	}
	objects, err := parseManifests(ctx, entry.Name, data)
	if err != nil {
		return Item{}, err
	}
	return Item{Revision: revision, Objects: objects}, r.order.revision(number)
}

// parseManifests parses an entry of manifests, one on each line. The size of one line's object is
// bounded; the number of lines is not.
func parseManifests(ctx context.Context, entry string, data []byte) ([]manifest.Object, error) {
	var objects []manifest.Object
	seen := map[manifest.Digest]bool{}
	for number := 1; len(data) > 0; number++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, rest, ended := bytes.Cut(data, []byte("\n"))
		if !ended {
			return nil, fmt.Errorf("%s, line %d: it does not end", entry, number)
		}
		data = rest
		var l line
		if err := strictly(text, &l); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", entry, number, err)
		}
		object, err := l.check()
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", entry, number, err)
		}
		if seen[object.Digest] {
			return nil, fmt.Errorf("%s, line %d: %s occurs twice", entry, number, object.ID)
		}
		seen[object.Digest] = true
		objects = append(objects, object)
	}
	return objects, nil
}

// end compares the checksums, and checks that no entry follows.
func (r *Reader) end(entry *tar.Header) error {
	if err := r.order.end(); err != nil {
		return err
	}
	want := bytes.Clone(r.sums.Bytes())
	got, err := r.data(entry, r.limits.maxSumsBytes())
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the archive is damaged: %s", firstDifference(string(got), string(want)))
	}
	if extra, err := r.header(); err == nil {
		return fmt.Errorf("the archive continues after its end, with %.200q", extra.Name)
	} else if !errors.Is(err, io.EOF) {
		return cut(err)
	}
	// The frame is read to its end, because it has a checksum too.
	switch n, err := io.ReadFull(r.rest, make([]byte, 1)); {
	case n > 0:
		return errors.New("the archive continues after its end")
	case !errors.Is(err, io.EOF):
		return cut(err)
	}
	sum := sha256.Sum256(want)
	r.digest = "sha256:" + hex.EncodeToString(sum[:])
	return nil
}

// firstDifference describes the first entry with a different checksum.
func firstDifference(got, want string) string {
	have := map[string]bool{}
	for _, line := range strings.Split(got, "\n") {
		have[line] = true
	}
	for _, line := range strings.Split(want, "\n") {
		if !have[line] {
			_, name, _ := strings.Cut(line, "  ")
			return name + " does not have the checksum that " + sumsName + " gives it"
		}
	}
	return sumsName + " lists more than the archive has"
}
