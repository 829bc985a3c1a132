package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGarbageFor(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		inUse  uint64
		want   int
	}{
		"nothing yet": {"the first collection comes before the process is large", 0, 3200},
		"small":       {"a share of little is little", 16 << 20, 200},
		"even":        {"32 MB are 40 percent of 80", 80 << 20, 40},
		"large":       {"a share of much is much", 1 << 30, 40},
	} {
		t.Run(name, func(t *testing.T) {
			if got := garbageFor(tc.inUse); got != tc.want {
				t.Errorf("%d percent, want %d: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestLimitGarbage: what is in use decides, also when it changes.
func TestLimitGarbage(t *testing.T) {
	before := debug.SetGCPercent(100)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		debug.SetGCPercent(before)
	})
	LimitGarbage(ctx)
	for _, size := range []int{200 << 20, 16 << 20, 200 << 20} {
		held := make([]byte, size)
		deadline := time.Now().Add(time.Minute)
		for percent := 0; ; {
			runtime.GC()
			percent = currentPercent()
			if want := garbageFor(inUse()); percent == want && (percent == garbagePercent) == (size > 80<<20) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes are held, and %d percent of garbage allowed", size, percent)
			}
			runtime.Gosched() // the cleanup runs by itself, soon
		}
		runtime.KeepAlive(held)
	}
}

func currentPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
