package template

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
)

// limit bounds the memory and the processor time of this process. The kernel ends it when
// it takes more, whatever a template does.
func limit(memory, seconds string) error {
	bytes, err := strconv.ParseUint(memory, 10, 63)
	if err != nil {
		return fmt.Errorf("bytes of memory: %w", err)
	}
	time, err := strconv.ParseUint(seconds, 10, 32)
	if err != nil {
		return fmt.Errorf("seconds: %w", err)
	}
	// The process has started: from now on Go's default holds, whatever GOGC says.
	debug.SetGCPercent(100)
	// Before the kernel refuses, garbage is collected.
	debug.SetMemoryLimit(int64(bytes / 4 * 3))
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bytes, Max: bytes}); err != nil {
		return fmt.Errorf("memory of %d bytes: %w", bytes, err)
	}
	// The parent counts the time, and says so. This is for when it is gone: threads that
	// collect garbage count, so in a second more than one of the processor's goes by.
	time *= uint64(runtime.NumCPU()) + 1
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: time, Max: time}); err != nil {
		return fmt.Errorf("%d seconds of processor time: %w", time, err)
	}
	return nil
}
