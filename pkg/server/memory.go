package server

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"
)

const (
	// memoryInterval is how often is looked whether there is memory to give back.
	memoryInterval = 5 * time.Second
	// quietBytes is how much is allocated in an interval in which nothing happens
	// but watches, leases and probes.
	quietBytes = 8 << 20
	// leastSpare is what giving back must bring at least, in bytes, and of the heap
	// as a part of what is in use: a collection looks at all of that.
	leastSpare     = 16 << 20
	leastSparePart = 8
)

// memoryUse is what this process has in memory, in bytes.
type memoryUse struct {
	// Allocated is all that was ever allocated on the heap.
	Allocated uint64
	// Live is what the last collection found in use.
	Live uint64
	// Held is what objects have, garbage among them, and what is free and was not
	// given back to the system.
	Held uint64
	// Mapped is what is resident of files: the program and the database.
	Mapped uint64
}

// spareMemory gives back memory that this process has and does not use.
type spareMemory struct {
	read func() memoryUse
	// heap collects and gives back all that is free.
	heap func()
	// pages gives back what is resident of the database.
	pages func()
}

// newSpareMemory is that of this process; pages is nil when it has no database.
func newSpareMemory(pages func()) *spareMemory {
	if pages == nil {
		pages = func() {}
	}
	return &spareMemory{read: readMemory, heap: freeHeap, pages: pages}
}

// freeHeap collects twice: what pools hold, and what is held for a cleanup only, the
// first collection merely finds.
func freeHeap() {
	runtime.GC()
	debug.FreeOSMemory()
}

// giveBack returns memory to the system when a burst of work is over, until the
// context ends.
//
// Go collects again when the heap has grown by its percentage, and while nothing
// happens that may be never: what a start or a large list needed for a moment would
// count as this process' memory for hours. The same is true of the pages of the
// database, all of which etcd reads when it starts, and few of them ever again.
func (s *spareMemory) giveBack(ctx context.Context) {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	// What stays mapped is the program.
	program := uint64(0)
	for before := s.read(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.read()
		quiet := now.Allocated-before.Allocated < quietBytes
		before = now
		if !quiet {
			continue
		}
		if now.Held > now.Live && now.Held-now.Live > max(leastSpare, now.Live/leastSparePart) {
			s.heap()
		}
		if now.Mapped > program+leastSpare {
			s.pages()
			program = s.read().Mapped
		}
	}
}

// readMemory asks the Go runtime and the kernel.
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
		Mapped:    mappedMemory(),
	}
}

// mappedMemory is what is resident of files, in bytes; 0 where the kernel does not
// tell.
func mappedMemory() uint64 {
	// Of Linux, see proc_pid_statm(5); the third number counts these pages.
	const shared = 2
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	numbers := bytes.Fields(content)
	if len(numbers) <= shared {
		return 0
	}
	pages, err := strconv.ParseUint(string(numbers[shared]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
