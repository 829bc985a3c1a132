package rollout

import (
	"fmt"
	"os"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
)

// forgetPeak makes a process' peak memory what it has now.
func forgetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("forgetting the peak memory of process %d: %w", pid, err)
	}
	return nil
}

// usage is the use of processors and memory by a process, or by several one after the other.
type usage struct {
	cpu time.Duration
	// peak resident memory, in bytes.
	peak uint64
}

// usageOf reads what a running process took so far.
func usageOf(pid int) (usage, error) {
	cpu, err := measure.CPUOf(pid)
	if err != nil {
		return usage{}, err
	}
	memory, err := measure.MemoryOf(pid)
	return usage{cpu: cpu, peak: memory.Peak}, err
}
