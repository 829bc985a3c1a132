package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// folderName begins the names of our folders in the system's temporary one.
// They are not t.TempDir, because sockets and people need short paths.
const folderName = "penstock-cluster-"

// folder makes a folder that is removed with the test. A test that is killed,
// by its timeout for instance, cannot do that; so the folders that such tests
// left are removed on the way.
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

// newFolder is folder for who removes it.
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

// claim locks a folder for as long as this process lives, or fails when another
// process has it. The lock is not inherited by the programs that are started.
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

// sweep removes the folders of tests that are no more. A folder that cannot be removed is
// no concern of the test that happens to come by.
func sweep() {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), folderName+"*"))
	for _, dir := range folders {
		// A folder that is still empty may be about to be claimed.
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
