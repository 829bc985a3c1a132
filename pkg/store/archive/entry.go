package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// expect returns the next entry, which must have the given name.
func (r *Reader) expect(name string) (*tar.Header, error) {
	entry, err := r.header()
	if err != nil {
		return nil, cut(err)
	}
	if entry.Name != name {
		return nil, fmt.Errorf("the entry %.200q is in the place of %s", entry.Name, name)
	}
	return entry, nil
}

// header returns the next entry.
func (r *Reader) header() (*tar.Header, error) {
	r.rest.header = maxHeaderBytes
	defer func() { r.rest.header = 0 }()
	return r.tar.Next()
}

// record decodes an entry of JSON. An unknown field is an error, because new fields need a new
// format.
func (r *Reader) record(entry *tar.Header, into any) error {
	data, err := r.data(entry, r.limits.RecordBytes)
	if err != nil {
		return err
	}
	if err := strictly(data, into); err != nil {
		return fmt.Errorf("%s: %w", entry.Name, err)
	}
	return nil
}

// data reads an entry that is a plain file, and records its checksum.
func (r *Reader) data(entry *tar.Header, limit int64) ([]byte, error) {
	if entry.Typeflag != tar.TypeReg || len(entry.PAXRecords) > 0 || entry.Linkname != "" {
		return nil, fmt.Errorf("the entry %.200q is not a plain file", entry.Name)
	}
	if entry.Size < 0 || entry.Size > limit {
		return nil, fmt.Errorf("%s has %d bytes, %d are allowed", entry.Name, entry.Size, limit)
	}
	// The buffer grows with the data, not with the size in the header.
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(r.tar, limit+1))
	if err != nil {
		return nil, cut(err)
	}
	if n != entry.Size {
		return nil, fmt.Errorf("%s has %d bytes, but its header says %d", entry.Name, n, entry.Size)
	}
	fmt.Fprintf(&r.sums, "%x  %s\n", sha256.Sum256(data.Bytes()), entry.Name)
	if int64(r.sums.Len()) > 2*r.limits.maxSumsBytes() {
		return nil, errors.New("the archive has more entries than are allowed")
	}
	return data.Bytes(), nil
}

// strictly decodes exactly one JSON value without unknown fields.
func strictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(into); {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends in the middle")
	case err != nil:
		return err
	}
	if len(bytes.TrimSpace(data[decoder.InputOffset():])) > 0 {
		return errors.New("it continues after its end")
	}
	return nil
}

// cut returns the error for an archive that ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the archive is cut off: it ends before " + sumsName)
	}
	return err
}

// bounded returns an error after a number of bytes.
type bounded struct {
	from        io.Reader
	left, limit int64
	// header is the number of bytes that may still be read of an entry's header; 0 outside a
	// header.
	header int64
}

var errHeaders = errors.New("the header of an entry is longer than is allowed")

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// The stream may end exactly here.
		if n, err := b.from.Read(make([]byte, 1)); n == 0 && err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("the archive has more than the %d bytes that are allowed, decompressed", b.limit)
	}
	allowed := min(int64(len(p)), b.left)
	if b.header > 0 {
		// The last allowed byte is never read, because a header of 0 means that no header is being
		// read.
		if allowed = min(allowed, b.header-1); allowed == 0 {
			return 0, errHeaders
		}
	}
	n, err := b.from.Read(p[:allowed])
	b.left -= int64(n)
	if b.header > 0 {
		b.header -= int64(n)
	}
	return n, err
}
