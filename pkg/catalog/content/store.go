package content

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// The folders of a store. The format is in the name of a folder: one of another format is
// none, and is collected.
const (
	contentPrefix = "v1-"
	buildPrefix   = "build-"
)

// Store is a folder with contents, by the digest of their catalogs. One process has it at a
// time.
type Store struct {
	root string
	// slot is taken by whoever builds: one at a time bounds memory.
	slot chan struct{}

	mu sync.Mutex
	// needed counts who is about to use a digest.
	needed map[string]int
}

// Open makes or opens a folder, and removes what a crash left half-built.
func Open(root string) (*Store, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("opening the folder of contents of catalogs: %w", err)
	}
	half, err := filepath.Glob(filepath.Join(root, buildPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, folder := range half {
		if err := os.RemoveAll(folder); err != nil {
			return nil, fmt.Errorf("removing the half-built content of a catalog: %w", err)
		}
	}
	return &Store{root: root, slot: make(chan struct{}, 1), needed: map[string]int{}}, nil
}

var digestPattern = regexp.MustCompile(`^[a-z0-9]+:[a-f0-9]{32,128}$`)

func (s *Store) folder(digest string) string {
	return filepath.Join(s.root, contentPrefix+strings.ReplaceAll(digest, ":", "-"))
}

// Documents is how a catalog is read when its content has to be made: fbc's Read or
// ReadDirectory with what it reads.
type Documents func(ctx context.Context, found func(*fbc.Document) error) error

// Find returns the content of a digest that is here, whole, or nil.
func (s *Store) Find(digest string) *Content {
	if !digestPattern.MatchString(digest) {
		return nil
	}
	found, err := open(s.folder(digest), digest)
	if err != nil {
		return nil
	}
	return found
}

// Ensure returns the content of a digest, and makes it when it is not here.
func (s *Store) Ensure(ctx context.Context, digest string, documents Documents) (*Content, error) {
	if !digestPattern.MatchString(digest) {
		return nil, fmt.Errorf("keeping the content of a catalog: %q is no digest: want <algorithm>:<hex>", digest)
	}
	s.need(digest, 1)
	defer s.need(digest, -1)
	select {
	case s.slot <- struct{}{}:
		defer func() { <-s.slot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if found := s.Find(digest); found != nil {
		return found, nil
	}
	building, err := os.MkdirTemp(s.root, buildPrefix)
	if err != nil {
		return nil, fmt.Errorf("keeping the content of catalog %s: %w", digest, err)
	}
	defer os.RemoveAll(building)
	if err := build(ctx, building, documents); err != nil {
		return nil, fmt.Errorf("keeping the content of catalog %s: %w", digest, err)
	}
	// What is there under this name is not whole, or it would have been found.
	err = os.RemoveAll(s.folder(digest))
	if err == nil {
		err = os.Rename(building, s.folder(digest))
	}
	if err == nil {
		err = syncFolder(s.root)
	}
	if err != nil {
		return nil, fmt.Errorf("keeping the content of catalog %s: %w", digest, err)
	}
	return open(s.folder(digest), digest)
}

func (s *Store) need(digest string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.needed[digest] += by; s.needed[digest] == 0 {
		delete(s.needed, digest)
	}
}

// Collect removes the contents whose digest is not named, except those that are being made.
// One that somebody reads stays readable for them.
func (s *Store) Collect(digests []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[string]bool{}
	for _, digest := range digests {
		kept[s.folder(digest)] = true
	}
	for digest := range s.needed {
		kept[s.folder(digest)] = true
	}
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return fmt.Errorf("collecting contents of catalogs: %w", err)
	}
	var failed []error
	for _, entry := range entries {
		name := filepath.Join(s.root, entry.Name())
		if strings.HasPrefix(entry.Name(), buildPrefix) || kept[name] {
			continue
		}
		failed = append(failed, os.RemoveAll(name))
	}
	return errors.Join(failed...)
}

// syncFolder makes a rename outlive a crash of the machine.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
