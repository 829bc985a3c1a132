// Package memory gives back to the system what this process has in memory and does not use.
package memory

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
	// interval is how often is looked whether there is memory to give back.
	interval = 5 * time.Second
	// quietBytes is how much is allocated in an interval in which nothing happens
	// but watches, leases and probes.
	quietBytes = 8 << 20
	// leastPages is what giving back pages of the database must bring at least, in bytes.
	leastPages = 16 << 20
	// leastSpare is the same of the heap, also as a part of what is in use: a collection
	// looks at all of that. A server that does nothing makes so much garbage in 20 s, and
	// collects it in some 30 ms.
	leastSpare     = 6 << 20
	leastSparePart = 8
)

// usage is what this process has in memory, in bytes.
type usage struct {
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

// Spare gives back memory that this process has and does not use.
type Spare struct {
	read func() usage
	// heap collects and gives back all that is free.
	heap func()
	// pages gives back what is resident of the database.
	pages func()
}

// New is that of this process; pages is nil when it has no database.
func New(pages func()) *Spare {
	if pages == nil {
		pages = func() {}
	}
	return &Spare{read: readUse, heap: freeHeap, pages: pages}
}

// freeHeap collects twice: what pools hold, and what is held for a cleanup only, the
// first collection merely finds.
func freeHeap() {
	runtime.GC()
	debug.FreeOSMemory()
}

// GiveBack returns memory to the system when a burst of work is over, until the
// context ends.
//
// Go collects again when the heap has grown by its percentage, and while nothing
// happens that may be never: what a start or a large list needed for a moment would
// count as this process' memory for hours. The same is true of the pages of the
// database, all of which etcd reads when it starts, and few of them ever again.
func (s *Spare) GiveBack(ctx context.Context) {
	ticker := time.NewTicker(interval)
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
		if now.Mapped > program+leastPages {
			s.pages()
			program = s.read().Mapped
		}
	}
}

// readUse asks the Go runtime and the kernel.
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
		Mapped:    mapped(),
	}
}

// mapped is what is resident of files, in bytes; 0 where the kernel does not
// tell.
func mapped() uint64 {
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
