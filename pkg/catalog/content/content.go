package content

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Content is the whole content of one catalog. It is safe for concurrent use. It stays readable
// after Collect removes it; the runtime closes its files after the last reference.
type Content struct {
	digest                          string
	plain, compressed, sections     *os.File
	plainSize, compressedSize, rows int64
	made                            time.Time
}

func open(folder, digest string) (*Content, error) {
	c := &Content{digest: digest}
	for name, into := range map[string]struct {
		file **os.File
		size *int64
	}{plainFile: {&c.plain, &c.plainSize}, compressedFile: {&c.compressed, &c.compressedSize}, sectionsFile: {&c.sections, &c.rows}} {
		file, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		*into.file, *into.size = file, info.Size()
		if name == plainFile {
			c.made = info.ModTime()
		}
	}
	// A crash of the machine may have truncated files, so compare the sizes.
	var all int64
	if err := readSections(c.table(), func(row section) { all += row.size }); err != nil {
		return nil, err
	}
	if all != c.plainSize {
		return nil, errors.New("the content of a catalog is not whole")
	}
	return c, nil
}

func (c *Content) table() io.Reader { return io.NewSectionReader(c.sections, 0, c.rows) }

// Digest returns the digest of the catalog.
func (c *Content) Digest() string { return c.digest }

// Size returns the size of all documents as JSON lines, in bytes.
func (c *Content) Size() int64 { return c.plainSize }

// Made returns the time when the content was written to this disk.
func (c *Content) Made() time.Time { return c.made }

// All reads all documents as JSON lines.
func (c *Content) All() *io.SectionReader { return io.NewSectionReader(c.plain, 0, c.plainSize) }

// Compressed reads all documents, compressed with gzip.
func (c *Content) Compressed() *io.SectionReader {
	return io.NewSectionReader(c.compressed, 0, c.compressedSize)
}

// Select reads the documents with a schema, a package and a name; an empty value matches all. As in
// catalogd, an olm.package has no package, and documents without a schema match nothing.
func (c *Content) Select(schema, pkg, name string) (io.Reader, error) {
	var found []section
	err := readSections(c.table(), func(row section) {
		if row.schema == "" || schema != "" && row.schema != schema || pkg != "" && row.pkg != pkg || name != "" && row.name != name {
			return
		}
		// Adjacent documents are read together.
		if last := len(found) - 1; last >= 0 && found[last].at+found[last].size == row.at {
			found[last].size += row.size
			return
		}
		found = append(found, section{at: row.at, size: row.size})
	})
	if err != nil {
		return nil, err
	}
	return &selected{of: c.plain, rest: found}, nil
}

type selected struct {
	of   *os.File
	rest []section
}

// Read implements io.Reader.
func (s *selected) Read(into []byte) (int, error) {
	for len(s.rest) > 0 {
		next := &s.rest[0]
		if next.size == 0 {
			s.rest = s.rest[1:]
			continue
		}
		n, err := s.of.ReadAt(into[:min(int64(len(into)), next.size)], next.at)
		next.at += int64(n)
		next.size -= int64(n)
		if n > 0 {
			return n, nil
		}
		return 0, err
	}
	return 0, io.EOF
}
