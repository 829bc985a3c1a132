package index

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// The files of an index. The table is read as a whole, packages are read separately.
const (
	tableFile    = "table"
	packagesFile = "packages"
)

// maxUncompressed limits the size of a package to the limit of a whole catalog.
const maxUncompressed = 1 << 30

// Index is the index of one catalog. It is safe for concurrent use.
type Index struct {
	digest  string
	table   table
	file    *os.File
	decoder *zstd.Decoder
	// damaged is set if a package or an icon could not be read. Then the next Update builds the
	// index again.
	damaged atomic.Bool
}

// table is kept in memory.
type table struct {
	// Size is the size of the packages file, in bytes.
	Size     int64     `json:"size"`
	Packages []Summary `json:"packages"`
}

type segment struct {
	Offset int64 `json:"offset"`
	Size   int64 `json:"size"`
}

// open reads the table. The file stays open while the index is referenced, and then the runtime
// closes it. So readers can continue after the index is collected.
func open(folder, digest string) (*Index, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxUncompressed))
	if err != nil {
		return nil, err
	}
	i := &Index{digest: digest, decoder: decoder}
	packed, err := os.ReadFile(filepath.Join(folder, tableFile))
	if err != nil {
		return nil, err
	}
	if err := i.unpack(packed, &i.table); err != nil {
		return nil, fmt.Errorf("reading the table of an index: %w", err)
	}
	compact(i.table.Packages)
	if i.file, err = os.Open(filepath.Join(folder, packagesFile)); err != nil {
		return nil, err
	}
	info, err := i.file.Stat()
	if err == nil && info.Size() != i.table.Size {
		err = fmt.Errorf("%s has %d bytes, want %d", i.file.Name(), info.Size(), i.table.Size)
	}
	if err != nil {
		_ = i.file.Close()
		return nil, err
	}
	return i, nil
}

// verify reads everything once, because zstd keeps a checksum of each frame.
func (i *Index) verify() error {
	for _, one := range i.table.Packages {
		if _, err := i.Package(one.Name); err != nil {
			return err
		}
		if _, err := i.Icon(one.Name); err != nil {
			return err
		}
	}
	return nil
}

// Digest returns the digest of the catalog.
func (i *Index) Digest() string { return i.digest }

// Packages returns the table, sorted by name. It is shared: do not change it.
func (i *Index) Packages() []Summary { return i.table.Packages }

// Find returns the row of a package, or nil. It is shared: do not change it.
func (i *Index) Find(name string) *Summary {
	at, found := slices.BinarySearchFunc(i.table.Packages, name, func(row Summary, name string) int { return strings.Compare(row.Name, name) })
	if !found {
		return nil
	}
	return &i.table.Packages[at]
}

// Package reads one package for the resolver: without its icon and without documents of other
// schemas. Of olm.csv.metadata it has only the fields that decide whether OLM v1 can install the
// bundle. It returns nil if the catalog does not have the package.
func (i *Index) Package(name string) (*fbc.Config, error) {
	row := i.Find(name)
	if row == nil {
		return nil, nil
	}
	config := &fbc.Config{}
	if err := i.read(row.Package, config); err != nil {
		return nil, fmt.Errorf("reading package %s of catalog %s: %w", name, i.digest, err)
	}
	return config, nil
}

// Icon reads the icon of a package; nil if there is none.
func (i *Index) Icon(name string) (*fbc.Icon, error) {
	row := i.Find(name)
	if row == nil || row.Icon.Size == 0 {
		return nil, nil
	}
	icon := &fbc.Icon{}
	if err := i.read(row.Icon, icon); err != nil {
		return nil, fmt.Errorf("reading the icon of package %s of catalog %s: %w", name, i.digest, err)
	}
	return icon, nil
}

func (i *Index) read(at segment, into any) error {
	packed := make([]byte, at.Size)
	if _, err := io.ReadFull(io.NewSectionReader(i.file, at.Offset, at.Size), packed); err != nil {
		i.damaged.Store(true)
		return err
	}
	if err := i.unpack(packed, into); err != nil {
		i.damaged.Store(true)
		return err
	}
	return nil
}

func (i *Index) unpack(packed []byte, into any) error {
	plain, err := i.decoder.DecodeAll(packed, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, into)
}
