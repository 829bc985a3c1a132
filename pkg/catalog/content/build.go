package content

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"

	"github.com/penstock-project/penstock/pkg/catalog/digestfolder"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

const (
	plainFile      = "catalog.jsonl"
	compressedFile = "catalog.jsonl.gz"
	sectionsFile   = "sections"
)

// maxWord limits a schema, package or name in a row of the table, in bytes.
const maxWord = 64 << 10

// builder writes the files of a content folder.
type builder struct {
	plain, compressed, sections *os.File
	plainOut, sectionsOut       *bufio.Writer
	compressedOut               *gzip.Writer
	offset                      int64
	line                        bytes.Buffer
}

func build(ctx context.Context, folder string, documents fbc.Documents) error {
	b := &builder{}
	for name, file := range map[string]**os.File{plainFile: &b.plain, compressedFile: &b.compressed, sectionsFile: &b.sections} {
		var err error
		if *file, err = os.Create(filepath.Join(folder, name)); err != nil {
			return err
		}
		defer (*file).Close()
	}
	b.plainOut, b.sectionsOut = bufio.NewWriterSize(b.plain, 256<<10), bufio.NewWriter(b.sections)
	var err error
	if b.compressedOut, err = gzip.NewWriterLevel(b.compressed, gzip.DefaultCompression); err != nil {
		return err
	}
	if err := documents(ctx, b.keep); err != nil {
		return err
	}
	if err := errors.Join(b.plainOut.Flush(), b.sectionsOut.Flush(), b.compressedOut.Close()); err != nil {
		return err
	}
	if err := errors.Join(b.plain.Sync(), b.compressed.Sync(), b.sections.Sync()); err != nil {
		return err
	}
	return digestfolder.Sync(folder)
}

// keep writes one document as a line. It removes only the white space between tokens.
func (b *builder) keep(d *fbc.Document) error {
	b.line.Reset()
	if err := json.Compact(&b.line, d.JSON); err != nil {
		if err := d.Check(); err != nil {
			return err // with file and line
		}
		return err
	}
	b.line.WriteByte('\n')
	size := int64(b.line.Len())
	if _, err := b.plainOut.Write(b.line.Bytes()); err != nil {
		return err
	}
	if _, err := b.compressedOut.Write(b.line.Bytes()); err != nil {
		return err
	}
	row := section{schema: d.Schema, pkg: d.Package, name: d.Name, at: b.offset, size: size}
	if d.Schema == fbc.SchemaPackage {
		row.pkg = "" // an olm.package has no field package, so catalogd does not find it by one
	}
	b.offset += size
	return row.write(b.sectionsOut)
}

// section is the position of one document in the plain file.
type section struct {
	schema, pkg, name string
	at, size          int64
}

func (s section) write(out *bufio.Writer) error {
	row := binary.AppendUvarint(nil, uint64(s.size))
	for _, word := range []string{s.schema, s.pkg, s.name} {
		row = binary.AppendUvarint(row, uint64(len(word)))
		row = append(row, word...)
	}
	_, err := out.Write(row)
	return err
}

func readSections(from io.Reader, found func(section)) error {
	in := bufio.NewReaderSize(from, 32<<10)
	var at int64
	for {
		size, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		row := section{at: at, size: int64(size)}
		for _, word := range []*string{&row.schema, &row.pkg, &row.name} {
			length, err := binary.ReadUvarint(in)
			if err != nil {
				return err
			}
			if length > maxWord {
				return errors.New("the table of a content is damaged")
			}
			text := make([]byte, length)
			if _, err := io.ReadFull(in, text); err != nil {
				return err
			}
			*word = string(text)
		}
		at += row.size
		found(row)
	}
}
