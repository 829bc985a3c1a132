package measure

import (
	"fmt"
	"syscall"
)

// WithoutHugePages disables transparent huge pages for this process and its children. On a machine
// that uses them for all memory, they would affect resident memory more than the program does. See
// PR_SET_THP_DISABLE in prctl(2).
func WithoutHugePages() error {
	const prSetTHPDisable = 41
	if _, _, code := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetTHPDisable, 1, 0, 0, 0, 0); code != 0 {
		return fmt.Errorf("disabling transparent huge pages: %w", code)
	}
	return nil
}
