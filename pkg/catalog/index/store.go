package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/penstock-project/penstock/pkg/catalog/digestfolder"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// The names in a store. The name of an index's folder has the format as prefix. An index of another
// format does not count; it is built again, and the old one is collected.
const (
	format      = "v2-"
	catalogsDir = "catalogs"
)

// Store is a folder of indexes, with the index that each catalog uses. Only one process uses it at
// a time.
type Store struct {
	root string
	// folders has the indexes.
	folders *digestfolder.Root

	mu      sync.Mutex
	current map[string]*Index
}

// Open reads which index each catalog uses, and removes incomplete indexes that a crash left. It
// skips an unreadable index; its catalog has none until Update.
func Open(root string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(root, catalogsDir), 0o700); err != nil {
		return nil, fmt.Errorf("opening the indexes of catalogs: %w", err)
	}
	folders, err := digestfolder.Open(root, format)
	if err != nil {
		return nil, fmt.Errorf("opening the indexes of catalogs: %w", err)
	}
	s := &Store{root: root, folders: folders, current: map[string]*Index{}}
	users, err := os.ReadDir(filepath.Join(root, catalogsDir))
	if err != nil {
		return nil, fmt.Errorf("opening the indexes of catalogs: %w", err)
	}
	for _, user := range users {
		digest, err := os.ReadFile(filepath.Join(root, catalogsDir, user.Name()))
		if err != nil || strings.HasPrefix(user.Name(), digestfolder.Unfinished) || !digestfolder.IsDigest(string(digest)) {
			continue
		}
		if found, err := open(folders.Folder(string(digest)), string(digest)); err == nil {
			s.current[user.Name()] = found
		}
	}
	return s, nil
}

// Update makes a catalog use the index of a digest, and builds the index if it is missing. Until the
// index is complete, and if building fails, the catalog keeps its previous index.
func (s *Store) Update(ctx context.Context, catalog, digest string, documents fbc.Documents) (*Index, error) {
	if !digestfolder.IsDigest(digest) {
		return nil, fmt.Errorf("updating the index of catalog %s: %q is no digest: want <algorithm>:<hex>", catalog, digest)
	}
	if catalog == "" || catalog != filepath.Base(catalog) || strings.HasPrefix(catalog, ".") || strings.HasPrefix(catalog, digestfolder.Unfinished) {
		return nil, fmt.Errorf("updating the index of catalog %q: this is no name of a catalog", catalog)
	}
	done, err := s.folders.Take(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer done()
	found, err := s.find(ctx, digest, documents)
	if err != nil {
		return nil, fmt.Errorf("updating the index of catalog %s to %s: %w", catalog, digest, err)
	}
	if err := s.record(catalog, digest); err != nil {
		return nil, fmt.Errorf("updating the index of catalog %s to %s: %w", catalog, digest, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current[catalog] = found
	return found, nil
}

func (s *Store) find(ctx context.Context, digest string, documents fbc.Documents) (*Index, error) {
	s.mu.Lock()
	for _, used := range s.current {
		if used.digest == digest && !used.damaged.Load() {
			s.mu.Unlock()
			return used, nil
		}
	}
	s.mu.Unlock()
	folder := s.folders.Folder(digest)
	if found, err := open(folder, digest); err == nil && found.verify() == nil {
		return found, nil
	}
	if err := s.folders.Make(digest, func(building string) error { return build(ctx, building, documents) }); err != nil {
		return nil, err
	}
	return open(folder, digest)
}

// record stores on disk which index a catalog uses, for the next start.
func (s *Store) record(catalog, digest string) error {
	folder := filepath.Join(s.root, catalogsDir)
	file, err := os.CreateTemp(folder, digestfolder.Unfinished)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(digest)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), filepath.Join(folder, catalog)); err != nil {
		return err
	}
	return digestfolder.Sync(folder)
}

// Current returns the index that a catalog uses, or nil. The index stays readable after the catalog
// changes to another index, and after it is collected.
func (s *Store) Current(catalog string) *Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current[catalog]
}

// Catalogs returns the names of the catalogs that have an index, sorted.
func (s *Store) Catalogs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.current))
}

// Remove removes a catalog from the store. The next Collect deletes its index, unless another catalog
// uses it.
func (s *Store) Remove(catalog string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.current[catalog]; !known {
		return nil
	}
	delete(s.current, catalog)
	if err := os.Remove(filepath.Join(s.root, catalogsDir, catalog)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing catalog %s: %w", catalog, err)
	}
	return nil
}

// Collect removes the indexes that no catalog uses or is about to use, and returns their number.
func (s *Store) Collect() (int, error) {
	// An Update that is about to use an index has protected its digest by Take.
	s.mu.Lock()
	defer s.mu.Unlock()
	var used []string
	for _, one := range s.current {
		used = append(used, one.digest)
	}
	removed, err := s.folders.Collect(used, catalogsDir)
	if err != nil {
		return removed, fmt.Errorf("collecting indexes of catalogs: %w", err)
	}
	return removed, nil
}
