package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbagePercent limits garbage, in percent of the live memory. With Go's default of 100, the
	// process is twice as large as its caches. Fragmentation keeps much of that memory from
	// returning to the system.
	garbagePercent = 40
	// leastGarbage is the garbage that is always allowed, in bytes. A collection scans all live
	// memory and all stacks. With 30 MB of live memory, 40 percent would mean a collection for
	// every five installed extensions, a fifth of the processor time. A much larger value fragments
	// the live memory more. The garbage is freed when the process is idle.
	leastGarbage = 32 << 20

	// startTime is the duration of a start with all its reads. The memory that remains from a start
	// stays fragmented by the garbage of the start, so less garbage saves memory for good. Until
	// the start ends, startPercent and leastStart replace garbagePercent and leastGarbage.
	startTime    = 10 * time.Second
	startPercent = 20
	leastStart   = 4 << 20
	// leastOfStore replaces leastGarbage in the process of the embedded etcd, during its start and
	// later. etcd has 10 MB of live memory, and one collection takes a few milliseconds.
	leastOfStore = 6 << 20
)

// GarbageLimit limits the garbage of a process.
type GarbageLimit struct {
	// percent refers to the live memory. least, in bytes, applies when the live memory is small.
	percent int
	least   uint64
}

// GarbageOfServer returns the limit of a server that has run for age.
func GarbageOfServer(age time.Duration) GarbageLimit {
	if age < startTime {
		return GarbageLimit{percent: startPercent, least: leastStart}
	}
	return GarbageLimit{percent: garbagePercent, least: leastGarbage}
}

// GarbageOfStore returns the limit of the embedded etcd in its own process.
func GarbageOfStore(time.Duration) GarbageLimit {
	return GarbageLimit{percent: garbagePercent, least: leastOfStore}
}

// LimitGarbage sets the threshold of the next collection after each collection, until ctx ends.
// limit receives the time since the call.
func LimitGarbage(ctx context.Context, limit func(age time.Duration) GarbageLimit) {
	began := time.Now()
	debug.SetGCPercent(limit(0).of(inUse()))
	limitGarbage(ctx, func() GarbageLimit { return limit(time.Since(began)) })
}

func limitGarbage(ctx context.Context, limit func() GarbageLimit) {
	type sentinel struct{ _ *byte } // the pointer keeps it out of the tiny allocator
	runtime.AddCleanup(&sentinel{}, func(ctx context.Context) {
		if ctx.Err() == nil {
			debug.SetGCPercent(limit().of(inUse()))
			limitGarbage(ctx, limit)
		}
	}, ctx)
}

// of returns the percentage for the live memory in bytes.
func (l GarbageLimit) of(inUse uint64) int {
	return max(l.percent, int(l.least*100/max(inUse, 1<<20)))
}

// inUse returns the live memory, in bytes, at the last garbage collection.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
