package volume

import "syscall"

func usageOf(dir string) (Usage, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return Usage{}, err
	}
	size := uint64(stat.Bsize)
	return Usage{Free: stat.Bavail * size, Size: stat.Blocks * size}, nil
}
