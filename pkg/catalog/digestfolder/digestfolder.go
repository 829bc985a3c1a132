// Package digestfolder keeps data of catalogs on disk, in one folder per catalog digest. A folder
// is complete or absent, even after a crash.
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

// Unfinished is the name prefix of incomplete files and folders.
const Unfinished = "build-"

// Root is a folder with one folder per digest. Only one process uses it at a time.
type Root struct {
	// path is the root folder. format is the name prefix of its folders. A folder of another format
	// does not count, and Collect removes it.
	path, format string
	// slot is held during a build. One build at a time limits memory.
	slot chan struct{}

	mu     sync.Mutex
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
			return nil, fmt.Errorf("removing an incomplete folder: %w", err)
		}
	}
	return &Root{path: path, format: format, slot: make(chan struct{}, 1), needed: map[string]int{}}, nil
}

var digestPattern = regexp.MustCompile(`^[a-z0-9]+:[a-f0-9]{32,128}$`)

// IsDigest reports whether a text has the form <algorithm>:<hex>, and can be part of a folder's
// name.
func IsDigest(text string) bool { return digestPattern.MatchString(text) }

// Folder returns the path of the folder of a digest. The folder need not exist.
func (r *Root) Folder(digest string) string {
	return filepath.Join(r.path, r.format+strings.ReplaceAll(digest, ":", "-"))
}

// Take locks the root for building, and protects a digest from Collect, until done is called.
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

// Make calls build with a new folder, and renames the folder to the digest's folder. It replaces an
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

// Collect removes the folders whose digest is not listed, except those protected by Take, and
// returns their number. It keeps entries with other names only if others lists them.
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

// Sync makes renames in a folder survive a crash of the machine.
func Sync(folder string) error {
	opened, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
