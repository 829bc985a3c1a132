package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// folderName is the prefix of our folders in the system's temporary folder. t.TempDir is not used,
// because its paths are too long for sockets.
const folderName = "penstock-cluster-"

// folder creates a folder that is removed with the test. A killed test, for instance after its
// timeout, cannot remove its folder. So each call also removes the folders of killed tests.
func folder(t testing.TB) string {
	t.Helper()
	dir, remove, err := newFolder()
	if err != nil {
		t.Fatalf("cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Errorf("cluster: %v", err)
		}
	})
	return dir
}

// newFolder creates a folder, and returns the function that removes it.
func newFolder() (dir string, remove func() error, err error) {
	sweep()
	if dir, err = os.MkdirTemp("", folderName); err != nil {
		return "", nil, fmt.Errorf("making the folder of the cluster: %w", err)
	}
	unlock, err := claim(dir)
	if err != nil {
		return "", nil, err
	}
	return dir, func() error {
		defer unlock()
		return os.RemoveAll(dir)
	}, nil
}

// claim locks a folder for the life of this process. It fails if another process holds the lock.
// Child processes do not inherit the lock.
func claim(dir string) (unlock func(), err error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the cluster: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("locking the folder of the cluster: %w", err)
	}
	return func() { file.Close() }, nil
}

// sweep removes the folders of tests that have ended. It ignores errors, because the current test
// does not depend on those folders.
func sweep() {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), folderName+"*"))
	for _, dir := range folders {
		// Another process may be about to claim an empty folder.
		if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
			continue
		}
		unlock, err := claim(dir)
		if err != nil {
			continue
		}
		if running, err := plane.Running(dir); err == nil && len(running) == 0 {
			_ = os.RemoveAll(dir)
		}
		unlock()
	}
}
