package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGarbageLimit(t *testing.T) {
	server, start, store := GarbageOfServer(time.Hour), GarbageOfServer(0), GarbageOfStore(0)
	for name, tc := range map[string]struct {
		reason string
		limit  GarbageLimit
		inUse  uint64
		want   int
	}{
		"nothing yet":     {"the first collection comes before the process is large", server, 0, 3200},
		"small":           {"a share of little is little", server, 16 << 20, 200},
		"even":            {"32 MB are 40 percent of 80", server, 80 << 20, 40},
		"large":           {"a share of much is much", server, 1 << 30, 40},
		"start":           {"what is kept from a start is to be close together", start, 16 << 20, 25},
		"start, large":    {"also that of thousands of revisions", start, 100 << 20, 20},
		"start over":      {"a burst of requests is no start", GarbageOfServer(startTime), 16 << 20, 200},
		"etcd":            {"it has little in use", store, 10 << 20, 60},
		"etcd, all along": {"its start is as all else it does", GarbageOfStore(time.Hour), 10 << 20, 60},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.limit.of(tc.inUse); got != tc.want {
				t.Errorf("%d percent, want %d: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestLimitGarbage: the live memory decides, also after it changed.
func TestLimitGarbage(t *testing.T) {
	before := debug.SetGCPercent(100)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		debug.SetGCPercent(before)
	})
	limit := GarbageOfServer(startTime)
	LimitGarbage(ctx, func(time.Duration) GarbageLimit { return limit })
	for _, size := range []int{200 << 20, 16 << 20, 200 << 20} {
		held := make([]byte, size)
		deadline := time.Now().Add(time.Minute)
		for percent := 0; ; {
			runtime.GC()
			percent = currentPercent()
			if want := limit.of(inUse()); percent == want && (percent == garbagePercent) == (size > 80<<20) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes are held, and %d percent of garbage allowed", size, percent)
			}
			runtime.Gosched() // the cleanup runs asynchronously
		}
		runtime.KeepAlive(held)
	}
}

func currentPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
