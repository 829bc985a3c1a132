package measure

import (
	"fmt"
	"syscall"
)

// WithoutHugePages keeps this process and all processes that it starts from transparent huge pages: where a
// machine has them for all memory, resident memory tells more of them than of a program. See
// PR_SET_THP_DISABLE in prctl(2).
func WithoutHugePages() error {
	const prSetTHPDisable = 41
	if _, _, code := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetTHPDisable, 1, 0, 0, 0, 0); code != 0 {
		return fmt.Errorf("disabling transparent huge pages: %w", code)
	}
	return nil
}
