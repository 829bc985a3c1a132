package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// The folders of a store. The format is in the name of an index: an index of another format
// is none, is made again, and is collected.
const (
	indexPrefix = "v2-"
	buildPrefix = "build-"
	catalogsDir = "catalogs"
)

// Store is a folder with indexes, and with the record of which catalog uses which. One
// process has it at a time.
type Store struct {
	root string
	// slot is taken by whoever builds: one index at a time bounds memory.
	slot chan struct{}

	mu sync.Mutex
	// current is what each catalog uses, and needed counts who is about to use a digest.
	current map[string]*Index
	needed  map[string]int
}

// Open reads which catalogs use which index, and removes what a crash left half-built. An
// index that cannot be read is left out: its catalog has none until Update.
func Open(root string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(root, catalogsDir), 0o700); err != nil {
		return nil, fmt.Errorf("opening the indexes of catalogs: %w", err)
	}
	s := &Store{root: root, slot: make(chan struct{}, 1), current: map[string]*Index{}, needed: map[string]int{}}
	half, err := filepath.Glob(filepath.Join(root, buildPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, folder := range half {
		if err := os.RemoveAll(folder); err != nil {
			return nil, fmt.Errorf("removing a half-built index: %w", err)
		}
	}
	users, err := os.ReadDir(filepath.Join(root, catalogsDir))
	if err != nil {
		return nil, fmt.Errorf("opening the indexes of catalogs: %w", err)
	}
	for _, user := range users {
		digest, err := os.ReadFile(filepath.Join(root, catalogsDir, user.Name()))
		if err != nil || strings.HasPrefix(user.Name(), buildPrefix) || !validDigest(string(digest)) {
			continue
		}
		if found, err := open(s.folder(string(digest)), string(digest)); err == nil {
			s.current[user.Name()] = found
		}
	}
	return s, nil
}

var digestPattern = regexp.MustCompile(`^[a-z0-9]+:[a-f0-9]{32,128}$`)

func validDigest(digest string) bool { return digestPattern.MatchString(digest) }

func (s *Store) folder(digest string) string {
	return filepath.Join(s.root, indexPrefix+strings.ReplaceAll(digest, ":", "-"))
}

// Documents is how a catalog is read when its index has to be made: fbc's Read or
// ReadDirectory with what it reads.
type Documents func(ctx context.Context, found func(*fbc.Document) error) error

// Update makes a catalog use the index of a digest. The index is built only when there is
// none; until it is complete, and when that fails, the catalog goes on with what it has.
func (s *Store) Update(ctx context.Context, catalog, digest string, documents Documents) (*Index, error) {
	if !validDigest(digest) {
		return nil, fmt.Errorf("updating the index of catalog %s: %q is no digest: want <algorithm>:<hex>", catalog, digest)
	}
	if catalog == "" || catalog != filepath.Base(catalog) || strings.HasPrefix(catalog, ".") || strings.HasPrefix(catalog, buildPrefix) {
		return nil, fmt.Errorf("updating the index of catalog %q: this is no name of a catalog", catalog)
	}
	s.need(digest, 1)
	defer s.need(digest, -1)
	select {
	case s.slot <- struct{}{}:
		defer func() { <-s.slot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// find takes an index that is there, or builds it.
func (s *Store) find(ctx context.Context, digest string, documents Documents) (*Index, error) {
	s.mu.Lock()
	for _, used := range s.current {
		if used.digest == digest && !used.damaged.Load() {
			s.mu.Unlock()
			return used, nil
		}
	}
	s.mu.Unlock()
	folder := s.folder(digest)
	if found, err := open(folder, digest); err == nil && found.verify() == nil {
		return found, nil
	}
	building, err := os.MkdirTemp(s.root, buildPrefix)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(building)
	if err := build(ctx, building, documents); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(folder); err != nil {
		return nil, err // what is there cannot be read
	}
	if err := os.Rename(building, folder); err != nil {
		return nil, err
	}
	if err := syncFolder(s.root); err != nil {
		return nil, err
	}
	return open(folder, digest)
}

// record says on disk which index a catalog uses: a restart begins with it.
func (s *Store) record(catalog, digest string) error {
	folder := filepath.Join(s.root, catalogsDir)
	file, err := os.CreateTemp(folder, buildPrefix)
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
	return syncFolder(folder)
}

func (s *Store) need(digest string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.needed[digest] += by; s.needed[digest] == 0 {
		delete(s.needed, digest)
	}
}

// Current returns the index that a catalog uses, or nil. It stays readable also when the
// catalog uses another one meanwhile, and when it is collected.
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

// Remove forgets a catalog. Its index goes with the next Collect, unless another one uses it.
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

// Collect removes the indexes that no catalog uses and none is about to use, and returns how
// many.
func (s *Store) Collect() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[string]bool{}
	for _, used := range s.current {
		kept[s.folder(used.digest)] = true
	}
	for digest := range s.needed {
		kept[s.folder(digest)] = true
	}
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return 0, fmt.Errorf("collecting indexes of catalogs: %w", err)
	}
	removed := 0
	for _, entry := range entries {
		name := filepath.Join(s.root, entry.Name())
		if entry.Name() == catalogsDir || strings.HasPrefix(entry.Name(), buildPrefix) || kept[name] {
			continue
		}
		if err := os.RemoveAll(name); err != nil {
			return removed, fmt.Errorf("collecting indexes of catalogs: %w", err)
		}
		removed++
	}
	return removed, nil
}

// syncFolder makes a rename outlive a crash of the machine.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
