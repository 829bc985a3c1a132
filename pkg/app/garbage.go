package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbagePercent is how much garbage there may be beside what is in use, in
	// percent. Go's default of 100 makes the process twice as large as its caches are,
	// and much of that stays: memory between what is in use is not given back.
	garbagePercent = 40
	// leastGarbage is how many bytes of garbage there may be however little is in use.
	// A collection looks at all that is in use and at all stacks. With 30 MB in use, 40
	// percent of garbage would be a collection for every five extensions that are
	// installed, a fifth of the processor time that takes. Much more than this leaves
	// more between what is in use. It is given back when nothing happens.
	leastGarbage = 32 << 20

	// startTime is how long a start takes, with all that it reads. The memory that is kept from
	// it is between its garbage, for good: the less garbage there is at a time, the closer
	// together. startPercent and leastStart are garbagePercent and leastGarbage until then.
	startTime    = 10 * time.Second
	startPercent = 20
	leastStart   = 4 << 20
	// leastOfStore is leastGarbage of the embedded etcd, always: it has 10 MB in use, and
	// a collection of those takes a few milliseconds.
	leastOfStore = 6 << 20
)

// GarbageLimit is how much garbage a process may have.
type GarbageLimit struct {
	// percent is of what is in use, least in bytes, however little is in use.
	percent int
	least   uint64
}

// GarbageOfServer is that of a server that has run for so long.
func GarbageOfServer(age time.Duration) GarbageLimit {
	if age < startTime {
		return GarbageLimit{percent: startPercent, least: leastStart}
	}
	return GarbageLimit{percent: garbagePercent, least: leastGarbage}
}

// GarbageOfStore is that of the embedded etcd in a process of its own.
func GarbageOfStore(time.Duration) GarbageLimit {
	return GarbageLimit{percent: garbagePercent, least: leastOfStore}
}

// LimitGarbage sets after each collection when the next one comes, until the context
// ends. The limit is asked for with the time since now.
func LimitGarbage(ctx context.Context, limit func(age time.Duration) GarbageLimit) {
	began := time.Now()
	debug.SetGCPercent(limit(0).of(inUse()))
	limitGarbage(ctx, func() GarbageLimit { return limit(time.Since(began)) })
}

func limitGarbage(ctx context.Context, limit func() GarbageLimit) {
	type sentinel struct{ _ *byte } // with a pointer, so that it is no part of something else
	runtime.AddCleanup(&sentinel{}, func(ctx context.Context) {
		if ctx.Err() == nil {
			debug.SetGCPercent(limit().of(inUse()))
			limitGarbage(ctx, limit)
		}
	}, ctx)
}

// of is the percentage for a number of bytes in use.
func (l GarbageLimit) of(inUse uint64) int {
	return max(l.percent, int(l.least*100/max(inUse, 1<<20)))
}

// inUse returns the bytes in use at the last garbage collection.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
