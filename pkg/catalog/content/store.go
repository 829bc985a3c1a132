package content

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/catalog/digestfolder"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// format is the prefix of the content folders' names.
const format = "v1-"

// Store is a folder of contents, by the digest of their catalogs. Only one process uses it at a
// time.
type Store struct{ root *digestfolder.Root }

// Open opens or creates a folder, and removes incomplete contents that a crash left.
func Open(root string) (*Store, error) {
	opened, err := digestfolder.Open(root, format)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of contents of catalogs: %w", err)
	}
	return &Store{root: opened}, nil
}

// Find returns the complete content of a digest, or nil.
func (s *Store) Find(digest string) *Content {
	if !digestfolder.IsDigest(digest) {
		return nil
	}
	found, err := open(s.root.Folder(digest), digest)
	if err != nil {
		return nil
	}
	return found
}

// Ensure returns the content of a digest, and builds it if it does not exist.
func (s *Store) Ensure(ctx context.Context, digest string, documents fbc.Documents) (*Content, error) {
	if !digestfolder.IsDigest(digest) {
		return nil, fmt.Errorf("keeping the content of a catalog: %q is no digest: want <algorithm>:<hex>", digest)
	}
	done, err := s.root.Take(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer done()
	if found := s.Find(digest); found != nil {
		return found, nil
	}
	if err := s.root.Make(digest, func(folder string) error { return build(ctx, folder, documents) }); err != nil {
		return nil, fmt.Errorf("keeping the content of catalog %s: %w", digest, err)
	}
	return open(s.root.Folder(digest), digest)
}

// Collect removes the contents whose digest is not listed, except contents that are being built. An
// open content stays readable.
func (s *Store) Collect(digests []string) error {
	if _, err := s.root.Collect(digests); err != nil {
		return fmt.Errorf("collecting contents of catalogs: %w", err)
	}
	return nil
}
