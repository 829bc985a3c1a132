package plane

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock prevents two callers from starting or removing the same plane at once. It locks the parent
// folder, so that no lock file remains.
func lock(dir string) (unlock func(), err error) {
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder above the control plane's: %w", err)
	}
	file, err := os.Open(parent)
	if err != nil {
		return nil, fmt.Errorf("opening %s for a lock: %w", parent, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", parent, err)
	}
	return func() { file.Close() }, nil
}
