package etcd

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// unmapPages makes the pages of a file that is mapped for reading be read anew when
// they are needed. The caller sees to it that the file stays mapped where it is.
func unmapPages(path string) error {
	file, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		start, end, ok := mappingOf(lines.Text(), path)
		if !ok {
			continue
		}
		// Of a shared mapping this drops what is in our page tables, and nothing of
		// the file.
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, start, end-start, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return nil
}

// mappingOf reads a line of proc_pid_maps(5): address range, permissions, offset,
// device, inode, path. It is ok for shared mappings of that path which nobody can
// write to.
func mappingOf(line, path string) (start, end uintptr, ok bool) {
	var permissions, offset, device string
	var inode uint64
	if _, err := fmt.Sscanf(line, "%x-%x %s %s %s %d", &start, &end, &permissions, &offset, &device, &inode); err != nil {
		return 0, 0, false
	}
	at := strings.IndexByte(line, '/')
	return start, end, permissions == "r--s" && at >= 0 && line[at:] == path && start < end
}
