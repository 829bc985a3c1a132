package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// memoryInterval is how often is looked whether there is memory to give back.
	memoryInterval = 5 * time.Second
	// quietBytes is how much is allocated in an interval in which nothing happens
	// but watches, leases and probes.
	quietBytes = 8 << 20
	// leastSpare is what giving back must bring at least, in bytes and as a part of
	// what is in use: a collection looks at all of that.
	leastSpare     = 16 << 20
	leastSparePart = 4
)

// memoryUse is what the heap has, in bytes.
type memoryUse struct {
	// Allocated is all that was ever allocated.
	Allocated uint64
	// Live is what the last collection found in use.
	Live uint64
	// Held is what objects have, garbage among them, and what is free and was not
	// given back to the system.
	Held uint64
}

// giveBack returns memory to the system when a burst of work is over, until the
// context ends. Go collects again when the heap has grown by its percentage, and
// while nothing happens that may be never: what a start or a large list needed for
// a moment would count as this process' memory for hours.
func giveBack(ctx context.Context, read func() memoryUse, free func()) {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for before := read(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := read()
		quiet := now.Allocated-before.Allocated < quietBytes
		before = now
		if quiet && now.Held > now.Live && now.Held-now.Live > max(leastSpare, now.Live/leastSparePart) {
			free()
		}
	}
}

// readMemory asks the Go runtime.
func readMemory() memoryUse {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return memoryUse{
		Allocated: samples[0].Value.Uint64(),
		Live:      samples[1].Value.Uint64(),
		Held:      samples[2].Value.Uint64() + samples[3].Value.Uint64(),
	}
}

// freeMemory collects and gives back all that is free.
func freeMemory() { debug.FreeOSMemory() }
