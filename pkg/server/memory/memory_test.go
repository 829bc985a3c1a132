package memory

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
)

// TestGiveBack: memory is returned only when the process is idle and there is enough to return.
func TestGiveBack(t *testing.T) {
	const mb = 1 << 20
	cases := map[string]struct {
		reason string
		uses   []usage
		heap   int
	}{
		"Burst":  {reason: "what was needed for a moment goes back once", uses: []usage{{}, {500 * mb, 40 * mb, 300 * mb}, {501 * mb, 40 * mb, 300 * mb}, {502 * mb, 40 * mb, 41 * mb}}, heap: 1},
		"Busy":   {reason: "the garbage collector does its own work", uses: []usage{{}, {500 * mb, 40 * mb, 300 * mb}, {900 * mb, 40 * mb, 300 * mb}}},
		"Little": {reason: "less than a collection is worth", uses: []usage{{}, {1 * mb, 40 * mb, 45 * mb}, {2 * mb, 40 * mb, 45 * mb}}},
		"Empty":  {reason: "of a server with nothing in it a third is garbage", uses: []usage{{}, {1 * mb, 18 * mb, 27 * mb}, {2 * mb, 18 * mb, 19 * mb}}, heap: 1},
		"Large":  {reason: "a part of what is in use", uses: []usage{{}, {1 * mb, 400 * mb, 440 * mb}, {2 * mb, 400 * mb, 460 * mb}}, heap: 1},
		"Shrunk": {reason: "less held than the last collection found", uses: []usage{{}, {1 * mb, 400 * mb, 300 * mb}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				heap := 0
				spare := &Spare{
					read: func() usage {
						use := tc.uses[0]
						if tc.uses = tc.uses[1:]; len(tc.uses) == 0 {
							cancel()
							tc.uses = []usage{use}
						}
						return use
					},
					heap: func() { heap++ },
				}
				spare.GiveBack(ctx)
				if heap != tc.heap {
					t.Errorf("%s: the heap was given back %d times, want %d", tc.reason, heap, tc.heap)
				}
			})
		})
	}
}

// TestReadMemory: readUse counts garbage, and does not count it after a collection.
func TestReadMemory(t *testing.T) {
	const size = 64 << 20
	before := readUse()
	garbage := make([]byte, size)
	garbage[0] = 1
	held := readUse()
	if held.Allocated-before.Allocated < size || held.Held < size {
		t.Errorf("%d bytes were allocated, and it went from %+v to %+v", size, before, held)
	}
	runtime.KeepAlive(garbage)
	freeHeap()
	if after := readUse(); after.Held+size/2 > held.Held || after.Live > size/2 {
		t.Errorf("the garbage is still there: %+v, then %+v", held, after)
	}
}
