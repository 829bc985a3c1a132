package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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
)

// LimitGarbage sets after each collection when the next one comes, until the context
// ends.
func LimitGarbage(ctx context.Context) {
	type sentinel struct{ _ *byte } // with a pointer, so that it is no part of something else
	runtime.AddCleanup(&sentinel{}, func(ctx context.Context) {
		if ctx.Err() == nil {
			debug.SetGCPercent(garbageFor(inUse()))
			LimitGarbage(ctx)
		}
	}, ctx)
}

// garbageFor is the percentage for a number of bytes in use.
func garbageFor(inUse uint64) int {
	return max(garbagePercent, int(leastGarbage*100/max(inUse, 1<<20)))
}

// inUse is what the last collection found in use, in bytes.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
