package rollout

import (
	"fmt"
	"os"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
)

// forgetPeak resets the peak memory of a process to its current memory.
func forgetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("forgetting the peak memory of process %d: %w", pid, err)
	}
	return nil
}

type usage struct {
	cpu  time.Duration
	peak uint64
}

func usageOf(pid int) (usage, error) {
	cpu, err := measure.CPUOf(pid)
	if err != nil {
		return usage{}, err
	}
	memory, err := measure.MemoryOf(pid)
	return usage{cpu: cpu, peak: memory.Peak}, err
}
