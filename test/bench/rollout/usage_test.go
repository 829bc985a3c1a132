package rollout

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
)

// tick is the unit of processor times in /proc.
const tick = 10 * time.Millisecond

// cpuOf returns the processor time that a process has taken so far.
func cpuOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d (Linux only): %w", pid, err)
	}
	// The name, which may hold anything, is in brackets; user and system time are
	// the twelfth and thirteenth word behind it.
	_, after, _ := bytes.Cut(content, []byte(") "))
	words := bytes.Fields(after)
	if len(words) < 13 {
		return 0, fmt.Errorf("reading the processor time of process %d: %q", pid, content)
	}
	var total time.Duration
	for _, word := range words[11:13] {
		ticks, err := strconv.ParseInt(string(word), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}

// forgetPeak makes a process' peak memory what it has now.
func forgetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("forgetting the peak memory of process %d: %w", pid, err)
	}
	return nil
}

// usage is what a process, or several one after the other, took.
type usage struct {
	cpu time.Duration
	// peak resident memory, in bytes.
	peak uint64
}

// usageOf reads what a running process took so far.
func usageOf(pid int) (usage, error) {
	cpu, err := cpuOf(pid)
	if err != nil {
		return usage{}, err
	}
	memory, err := measure.MemoryOf(pid)
	return usage{cpu: cpu, peak: memory.Peak}, err
}
