// Package volume measures the free room on the volume of the data directory, and reserves some of
// it for deletions.
package volume

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	mib = 1 << 20

	// The reserve lets etcd continue without growth: the next file of its write-ahead log (16 MiB),
	// the records of deletions, and database pages until freed pages are reused.
	leastReserve, maxReserve, reservePart = 48 * mib, 256 * mib, 20
	// The ballast is removed when less than half of the reserve is free.
	leastBallast, maxBallast, ballastPart = 16 * mib, 64 * mib, 40
)

// Usage is the usage of a volume.
type Usage struct {
	// Free is the space that this process may use, and Size the total space, in bytes.
	Free, Size uint64
	// FreeFiles is the number of files that can still be created, of Files in all. Files is 0 for a
	// file system without such a limit.
	Files, FreeFiles uint64
}

// LeastFiles is the number of free inodes below which nothing is added to the store. etcd creates
// files for a new log segment, for snapshots, and for a defragmentation.
const LeastFiles = 16

// LacksFiles reports whether the volume is short of inodes, which the free bytes do not show.
func (u Usage) LacksFiles() bool { return u.Files > 0 && u.FreeFiles < LeastFiles }

// Reserve returns the bytes that must stay free; with fewer, nothing is added to the store.
func (u Usage) Reserve() uint64 { return min(max(u.Size/reservePart, leastReserve), maxReserve) }

// ballast returns the size in bytes of the file that is deleted when the volume is full.
func (u Usage) ballast() uint64 { return min(max(u.Size/ballastPart, leastBallast), maxBallast) }

// Volume is the volume of a directory.
type Volume struct {
	dir   string
	usage func(dir string) (Usage, error)
}

// Of returns the volume of a directory. The directory need not exist yet.
func Of(dir string) *Volume { return &Volume{dir: dir, usage: usageOf} }

// Dir returns the directory.
func (v *Volume) Dir() string { return v.dir }

// Look returns the usage of the volume. It returns errors.ErrUnsupported if the system does not
// report it.
func (v *Volume) Look() (Usage, error) {
	usage, err := v.usage(v.dir)
	if err != nil {
		return Usage{}, fmt.Errorf("asking how much room there is in %s: %w", v.dir, err)
	}
	return usage, nil
}

// Step is the action on the ballast.
type Step string

const (
	// Kept means that the ballast did not change.
	Kept Step = ""
	// Released means that the ballast was removed.
	Released Step = "Released"
	// Restored means that the ballast was created.
	Restored Step = "Restored"
)

// Balance removes the ballast when less than half of the reserve is free. It creates the ballast
// when the volume has room for the reserve and twice the ballast.
func (v *Volume) Balance(usage Usage) (Step, error) {
	path := filepath.Join(v.dir, "ballast")
	_, err := os.Lstat(path)
	there := err == nil
	unfinished := path + ".new"
	if !there {
		// A killed process may have left this file.
		if err := os.Remove(unfinished); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Kept, fmt.Errorf("removing an unfinished ballast: %w", err)
		}
	}
	switch {
	case there && usage.Free < usage.Reserve()/2:
		if err := os.Remove(path); err != nil {
			return Kept, fmt.Errorf("removing the ballast: %w", err)
		}
		return Released, nil
	case !there && usage.Free >= usage.Reserve()+2*usage.ballast():
		if err := createFull(path, unfinished, int64(usage.ballast())); err != nil {
			return Kept, fmt.Errorf("making the ballast: %w", err)
		}
		return Restored, nil
	default:
		return Kept, nil
	}
}

// createFull creates a file with all of its blocks. The file gets its name only when it is finished,
// so that a smaller file is never taken for the ballast.
func createFull(path, unfinished string, size int64) error {
	file, err := os.OpenFile(unfinished, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = allocate(file, size)
	if errors.Is(err, errors.ErrUnsupported) {
		err = fill(file, size)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(unfinished))
	}
	return nil
}

// fill writes a file of a size, for file systems that cannot allocate ahead. A sparse file would be
// large and take no space. The bytes are random, so that they cannot be compressed.
func fill(file *os.File, size int64) error {
	if _, err := io.CopyN(file, rand.Reader, size); err != nil {
		return err
	}
	// Some file systems report a lack of space only here.
	return file.Sync()
}
