package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/penstock-project/penstock/pkg/catalog/content"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/catalog/index"
)

// maxProcesses bounds the processes that share a folder.
const maxProcesses = 64

// Folder is the folder of catalogs on disk. Several processes can share it. They share images, so
// each digest is downloaded once. Each process has its own indexes and contents.
type Folder struct {
	Images   *image.Store
	Indexes  *index.Store
	Contents *content.Store
	// Private is the folder for files that no other user may read.
	Private string

	lock *os.File
}

// OpenFolder opens a folder, and takes its first place that no other process has. After a restart
// this is usually the earlier place, with its files.
func OpenFolder(root string, options image.Options) (*Folder, error) {
	images, err := image.Open(filepath.Join(root, "images"), options)
	if err != nil {
		return nil, err
	}
	for i := range maxProcesses {
		place := filepath.Join(root, "process-"+strconv.Itoa(i))
		if err := os.MkdirAll(place, 0o700); err != nil {
			return nil, fmt.Errorf("opening the folder of catalogs: %w", err)
		}
		lock, err := os.OpenFile(filepath.Join(place, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening the folder of catalogs: %w", err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = lock.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				continue
			}
			return nil, fmt.Errorf("locking a subfolder of the folder of catalogs: %w", err)
		}
		return openPlace(place, lock, images)
	}
	return nil, fmt.Errorf("the folder of catalogs %s is in use by %d processes; no more are allowed", root, maxProcesses)
}

func openPlace(place string, lock *os.File, images *image.Store) (*Folder, error) {
	f := &Folder{Images: images, Private: filepath.Join(place, "private"), lock: lock}
	err := os.RemoveAll(f.Private) // left over from a crash
	if err == nil {
		err = os.Mkdir(f.Private, 0o700)
	}
	if err == nil {
		f.Indexes, err = index.Open(filepath.Join(place, "indexes"))
	}
	if err == nil {
		f.Contents, err = content.Open(filepath.Join(place, "contents"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the folder of catalogs: %w", err), lock.Close())
	}
	return f, nil
}

// Close releases the lock of the folder.
func (f *Folder) Close() error { return f.lock.Close() }
