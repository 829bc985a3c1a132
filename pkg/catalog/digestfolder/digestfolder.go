// Package digestfolder keeps data of catalogs on disk, in one folder for the digest of each
// catalog. A folder is complete or absent, even after a crash.
package digestfolder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Unfinished begins the names of files and folders that are being made.
const Unfinished = "build-"

// Root is a folder with a folder for each digest. Only one process uses it at a time.
type Root struct {
	// path is the folder, and format what the names of the folders in it begin with: one of
	// another format is none, and is collected.
	path, format string
	// slot is taken by the caller that makes one: one at a time bounds memory.
	slot chan struct{}

	mu sync.Mutex
	// needed counts who is about to use a digest.
	needed map[string]int
}

// Open opens or creates a root, and removes incomplete folders that a crash left.
func Open(path, format string) (*Root, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	half, err := filepath.Glob(filepath.Join(path, Unfinished+"*"))
	if err != nil {
		return nil, err
	}
	for _, folder := range half {
		if err := os.RemoveAll(folder); err != nil {
			return nil, fmt.Errorf("removing what is half-made: %w", err)
		}
	}
	return &Root{path: path, format: format, slot: make(chan struct{}, 1), needed: map[string]int{}}, nil
}

var digestPattern = regexp.MustCompile(`^[a-z0-9]+:[a-f0-9]{32,128}$`)

// IsDigest reports whether a text is <algorithm>:<hex>, and can be in the name of a folder.
func IsDigest(text string) bool { return digestPattern.MatchString(text) }

// Folder returns the path of the folder of a digest. The folder need not exist.
func (r *Root) Folder(digest string) string {
	return filepath.Join(r.path, r.format+strings.ReplaceAll(digest, ":", "-"))
}

// Take locks the root for building, and protects a digest from Collect. Both end when done is called.
func (r *Root) Take(ctx context.Context, digest string) (done func(), err error) {
	r.need(digest, 1)
	select {
	case r.slot <- struct{}{}:
		return func() { <-r.slot; r.need(digest, -1) }, nil
	case <-ctx.Done():
		r.need(digest, -1)
		return nil, ctx.Err()
	}
}

func (r *Root) need(digest string, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.needed[digest] += by; r.needed[digest] == 0 {
		delete(r.needed, digest)
	}
}

// Make calls build with a new folder, and puts the folder in the place of the digest. It replaces an
// incomplete folder of the digest. The caller must have called Take for the digest.
func (r *Root) Make(digest string, build func(folder string) error) error {
	building, err := os.MkdirTemp(r.path, Unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(building)
	if err := build(building); err != nil {
		return err
	}
	if err := os.RemoveAll(r.Folder(digest)); err != nil {
		return err
	}
	if err := os.Rename(building, r.Folder(digest)); err != nil {
		return err
	}
	return Sync(r.path)
}

// Collect removes the folders whose digest is not listed, except those protected by Take, and returns
// their number. Entries of other names are kept only if others lists them.
func (r *Root) Collect(digests []string, others ...string) (removed int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := map[string]bool{}
	for _, digest := range digests {
		kept[r.Folder(digest)] = true
	}
	for digest := range r.needed {
		kept[r.Folder(digest)] = true
	}
	entries, err := os.ReadDir(r.path)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, entry := range entries {
		name := filepath.Join(r.path, entry.Name())
		if slices.Contains(others, entry.Name()) || strings.HasPrefix(entry.Name(), Unfinished) || kept[name] {
			continue
		}
		if err := os.RemoveAll(name); err != nil {
			failed = append(failed, err)
			continue
		}
		removed++
	}
	return removed, errors.Join(failed...)
}

// Sync makes renames in a folder outlive a crash of the machine.
func Sync(folder string) error {
	opened, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
