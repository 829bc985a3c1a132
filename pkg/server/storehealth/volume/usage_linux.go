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

// allocate allocates all blocks of a file. It returns errors.ErrUnsupported if the file system
// cannot do that. etcd's own function then leaves a file without blocks, also after each
// interruption.
func allocate(file *os.File, size int64) error {
	for {
		err := syscall.Fallocate(int(file.Fd()), 0, 0, size)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
