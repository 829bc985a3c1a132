package index

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock-project/penstock/pkg/catalog/digestfolder"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// builder writes an index in two passes. First it writes condensed documents to a spool file, in
// the order in which they arrive. Then it joins them package by package. So it needs only the
// memory of the largest package.
type builder struct {
	spool   *os.File
	writer  *bufio.Writer
	offset  int64
	kept    map[string][]piece
	out     *os.File
	encoder *zstd.Encoder
	table   table
	// written is the uncompressed size of the last frame, in bytes.
	written int64
}

// piece is one document in the spool.
type piece struct {
	schema string
	segment
}

func build(ctx context.Context, folder string, documents fbc.Documents) error {
	b := &builder{kept: map[string][]piece{}}
	var err error
	if b.spool, err = os.Create(filepath.Join(folder, "spool")); err != nil {
		return err
	}
	defer os.Remove(b.spool.Name())
	defer b.spool.Close()
	b.writer = bufio.NewWriterSize(b.spool, 64<<10)
	if err := documents(ctx, b.keep); err != nil {
		return err
	}
	if err := b.writer.Flush(); err != nil {
		return err
	}
	// The window is small because packages are small, and the encoder's memory grows with it.
	if b.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true)); err != nil {
		return err
	}
	if b.out, err = os.Create(filepath.Join(folder, packagesFile)); err != nil {
		return err
	}
	err = b.writePackages(ctx)
	if err := errors.Join(err, b.out.Sync(), b.out.Close()); err != nil {
		return err
	}
	if err := b.writeTable(folder); err != nil {
		return err
	}
	return digestfolder.Sync(folder)
}

func (b *builder) keep(d *fbc.Document) error {
	var kept any
	var err error
	switch d.Schema {
	case fbc.SchemaPackage:
		kept, err = decoded[fbc.Package](d)
	case fbc.SchemaChannel:
		kept, err = decoded[fbc.Channel](d)
	case fbc.SchemaDeprecations:
		kept, err = decoded[fbc.Deprecations](d)
	case fbc.SchemaBundle:
		var bundle *fbc.Bundle
		if bundle, err = decoded[fbc.Bundle](d); err == nil {
			condense(bundle)
			kept = bundle
		}
	default:
		return d.Check() // the resolver does not use it
	}
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encoding %s %s of package %s: %w", d.Schema, d.Name, d.Package, err)
	}
	if _, err := b.writer.Write(encoded); err != nil {
		return err
	}
	b.kept[d.Package] = append(b.kept[d.Package], piece{d.Schema, segment{b.offset, int64(len(encoded))}})
	b.offset += int64(len(encoded))
	return nil
}

func decoded[T any](d *fbc.Document) (*T, error) {
	one := new(T)
	return one, d.Decode(one)
}

// condense removes the parts that the resolver does not use, which are most of a catalog.
func condense(bundle *fbc.Bundle) {
	bundle.RelatedImages = nil
	bundle.Properties = slices.DeleteFunc(bundle.Properties, func(p fbc.Property) bool { return p.Type == fbc.PropertyBundleObject })
	for i, property := range bundle.Properties {
		if property.Type == fbc.PropertyCSVMetadata {
			bundle.Properties[i].Value = condensedCSV(property.Value)
		}
	}
}

// condensedCSV keeps the fields that decide whether, and in which clusters, a bundle can be
// installed.
func condensedCSV(metadata json.RawMessage) json.RawMessage {
	var kept struct {
		DisplayName    string `json:"displayName,omitempty"`
		MinKubeVersion string `json:"minKubeVersion,omitempty"`
		InstallModes   []struct {
			Type      string `json:"type"`
			Supported bool   `json:"supported"`
		} `json:"installModes,omitempty"`
		APIServiceDefinitions struct {
			Owned []struct {
				Name string `json:"name"`
			} `json:"owned,omitempty"`
		} `json:"apiServiceDefinitions,omitzero"`
	}
	if err := json.Unmarshal(metadata, &kept); err != nil {
		return json.RawMessage("{}")
	}
	encoded, err := json.Marshal(kept)
	if err != nil {
		return json.RawMessage("{}")
	}
	return encoded
}

func (b *builder) writePackages(ctx context.Context) error {
	names := make([]string, 0, len(b.kept))
	for name := range b.kept {
		if name != "" { // documents without a package are skipped
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.writePackage(name); err != nil {
			return fmt.Errorf("indexing package %s: %w", name, err)
		}
	}
	return nil
}

func (b *builder) writePackage(name string) error {
	all := &fbc.Config{}
	for _, one := range b.kept[name] {
		encoded := make([]byte, one.Size)
		if _, err := io.ReadFull(io.NewSectionReader(b.spool, one.Offset, one.Size), encoded); err != nil {
			return err
		}
		if err := all.Add(&fbc.Document{Schema: one.schema, Package: name, JSON: encoded}); err != nil {
			return err
		}
	}
	delete(b.kept, name)
	config := all.Package(name)
	if config == nil {
		return nil
	}
	row := summary(name, config)
	whole := sha256.New()
	var err error
	if len(config.Packages) > 0 && config.Packages[0].Icon != nil {
		if row.Icon, err = b.write(config.Packages[0].Icon, whole); err != nil {
			return err
		}
		config.Packages[0].Icon = nil
	}
	if row.Package, err = b.write(config, whole); err != nil {
		return err
	}
	row.Bytes = b.written
	row.Digest = hex.EncodeToString(whole.Sum(nil)[:16])
	b.table.Packages = append(b.table.Packages, row)
	return nil
}

// write appends one frame, and adds its content to the hash.
func (b *builder) write(value any, told hash.Hash) (segment, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return segment{}, err
	}
	told.Write(encoded)
	b.written = int64(len(encoded))
	packed := b.encoder.EncodeAll(encoded, nil)
	at := segment{b.table.Size, int64(len(packed))}
	b.table.Size += at.Size
	_, err = b.out.Write(packed)
	return at, err
}

func (b *builder) writeTable(folder string) error {
	encoded, err := json.Marshal(b.table)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(folder, tableFile))
	if err != nil {
		return err
	}
	_, err = file.Write(b.encoder.EncodeAll(encoded, nil))
	return errors.Join(err, file.Sync(), file.Close())
}
