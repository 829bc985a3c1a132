package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Collect removes the images whose digest is not listed. It keeps images that any process has open
// or is pulling.
func (s *Store) Collect(digests []string) error {
	keep := map[string]bool{}
	for _, digest := range digests {
		keep[filepath.Base(s.folder(digest))] = true
	}
	return s.collect(func(name string, _ os.FileInfo) bool { return keep[name] })
}

// CollectUnused removes the images that were not opened since a time. It is for callers that cannot
// list the needed images.
func (s *Store) CollectUnused(since time.Time) error {
	return s.collect(func(name string, _ os.FileInfo) bool {
		record, err := os.Stat(filepath.Join(s.root, name, recordFile))
		return err == nil && record.ModTime().After(since)
	})
}

// collect removes the images for which keep returns false, and incomplete images that a crash left.
func (s *Store) collect(keep func(name string, info os.FileInfo) bool) error {
	found, err := os.ReadDir(s.root)
	if err != nil {
		return fmt.Errorf("collecting images: %w", err)
	}
	var failed []error
	for _, entry := range found {
		name := entry.Name()
		info, err := entry.Info()
		switch {
		case err != nil, strings.HasPrefix(name, lockPrefix), name == nowhere:
			continue
		case strings.HasPrefix(name, pullingPrefix):
			failed = append(failed, s.removeLocked(name, name))
		case strings.HasPrefix(name, pullPrefix):
			failed = append(failed, s.removeHalf(name))
		case !keep(name, info):
			failed = append(failed, s.removeImage(name))
		}
	}
	return errors.Join(failed...)
}

// removeHalf removes an incomplete pull of a crashed process. A running pull holds the lock that
// the folder's name contains.
func (s *Store) removeHalf(name string) error {
	pull, _, _ := strings.Cut(strings.TrimPrefix(name, pullPrefix), "-")
	return errors.Join(s.removeLocked(pullingPrefix+pull, name), s.removeLocked(pullingPrefix+pull, pullingPrefix+pull))
}

func (s *Store) removeLocked(lock, name string) error {
	file, err := tryLock(filepath.Join(s.root, lock))
	if errors.Is(err, errHeld) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", name, err)
	}
	defer file.Close()
	return os.RemoveAll(filepath.Join(s.root, name))
}

// removeImage removes an image that no process reads or is working on.
func (s *Store) removeImage(name string) error {
	folder := filepath.Join(s.root, name)
	digest := strings.Replace(strings.TrimPrefix(name, imagePrefix), "-", ":", 1)
	if !strings.HasPrefix(name, imagePrefix) || !validDigest(digest) {
		// The folder has another format, or is not Penstock's.
		return os.RemoveAll(folder)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[digest] != nil {
		return nil
	}
	reader, err := flocked(filepath.Join(folder, readersFile), os.O_RDWR|os.O_CREATE, syscall.LOCK_EX)
	switch {
	case errors.Is(err, errHeld):
		return nil
	case err != nil:
		return fmt.Errorf("removing %s: %w", name, err)
	}
	defer reader.Close()
	delete(s.whole, digest)
	return s.removeLocked(filepath.Base(s.lockFile(digest)), name)
}
