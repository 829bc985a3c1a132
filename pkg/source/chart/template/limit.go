package template

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
)

// limit limits the memory and the processor time of this process. The kernel enforces the limits.
func limit(memory, seconds string) error {
	bytes, err := strconv.ParseUint(memory, 10, 63)
	if err != nil {
		return fmt.Errorf("bytes of memory: %w", err)
	}
	time, err := strconv.ParseUint(seconds, 10, 32)
	if err != nil {
		return fmt.Errorf("seconds: %w", err)
	}
	// The start is over, so Go's default replaces GOGC.
	debug.SetGCPercent(100)
	// Garbage is collected before the kernel's limit is reached.
	debug.SetMemoryLimit(int64(bytes / 4 * 3))
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bytes, Max: bytes}); err != nil {
		return fmt.Errorf("memory of %d bytes: %w", bytes, err)
	}
	// Normally the parent limits the time, and reports it. This limit is for a process without its
	// parent. Garbage collection uses several threads, so a second can take more than one second of
	// processor time.
	time *= uint64(runtime.NumCPU()) + 1
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: time, Max: time}); err != nil {
		return fmt.Errorf("%d seconds of processor time: %w", time, err)
	}
	return nil
}
