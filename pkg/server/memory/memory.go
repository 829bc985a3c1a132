// Package memory returns unused memory of this process to the system.
package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	interval = 5 * time.Second
	// quietBytes bounds the allocations in an interval that counts as idle. Watches, leases and
	// probes allocate less.
	quietBytes = 8 << 20
	// leastSpare is the least gain of a collection, in bytes. The gain must also be at least the
	// used memory divided by leastSparePart, because a collection scans all used memory. An idle
	// server creates this much garbage in 20 s, and collects it in about 30 ms.
	leastSpare     = 6 << 20
	leastSparePart = 8
)

type usage struct {
	// Allocated is the total of bytes ever allocated on the heap.
	Allocated uint64
	// Live is the memory that the last collection found in use.
	Live uint64
	// Held is the memory of objects, including garbage, and the free memory that was not returned
	// to the system.
	Held uint64
}

// Spare returns unused memory of this process to the system.
type Spare struct {
	read func() usage
	// heap collects garbage and returns all free memory.
	heap func()
}

// New returns the Spare of this process.
func New() *Spare { return &Spare{read: readUse, heap: freeHeap} }

// freeHeap collects twice. The first collection only finds the contents of pools and objects with a
// cleanup; the second frees them.
func freeHeap() {
	runtime.GC()
	debug.FreeOSMemory()
}

// GiveBack returns memory to the system after a burst of work, until ctx ends.
//
// Go collects garbage when the heap has grown by a percentage. An idle process may never reach
// that. It would keep the memory of its start, or of a large list, for hours.
func (s *Spare) GiveBack(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for before := s.read(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.read()
		quiet := now.Allocated-before.Allocated < quietBytes
		before = now
		if quiet && now.Held > now.Live && now.Held-now.Live > max(leastSpare, now.Live/leastSparePart) {
			s.heap()
		}
	}
}

func readUse() usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return usage{
		Allocated: samples[0].Value.Uint64(),
		Live:      samples[1].Value.Uint64(),
		Held:      samples[2].Value.Uint64() + samples[3].Value.Uint64(),
	}
}
