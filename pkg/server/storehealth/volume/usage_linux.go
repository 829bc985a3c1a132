package volume

import (
	"errors"
	"os"
	"syscall"
)

func usageOf(dir string) (Usage, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return Usage{}, err
	}
	size := uint64(stat.Bsize)
	return Usage{Free: stat.Bavail * size, Size: stat.Blocks * size, Files: stat.Files, FreeFiles: stat.Ffree}, nil
}

// allocate gives a file all of its blocks; errors.ErrUnsupported is that its file system
// does not. That of etcd makes a file without blocks then, and after each interruption.
func allocate(file *os.File, size int64) error {
	for {
		err := syscall.Fallocate(int(file.Fd()), 0, 0, size)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
