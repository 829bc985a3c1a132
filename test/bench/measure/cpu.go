package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

const tick = 10 * time.Millisecond

// CPUOf returns the processor time of a process, including its ended children, since Penstock
// renders each chart in a child.
func CPUOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d (Linux only): %w", pid, err)
	}
	// The name may contain any character and is in parentheses. User and system time are the
	// twelfth and thirteenth word after it, and the times of children follow.
	_, after, _ := bytes.Cut(content, []byte(") "))
	words := bytes.Fields(after)
	if len(words) < 15 {
		return 0, fmt.Errorf("reading the processor time of process %d: %q", pid, content)
	}
	var total time.Duration
	for _, word := range words[11:15] {
		ticks, err := strconv.ParseInt(string(word), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}

// OwnCPU returns the processor time of this process, including its garbage collector. Other
// processes do not affect it.
func OwnCPU() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("reading the processor time of this process: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
