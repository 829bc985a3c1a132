package main

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
)

// TestGiveBack gives memory back when it is quiet and worth a collection, and then
// only.
func TestGiveBack(t *testing.T) {
	const mb = 1 << 20
	cases := map[string]struct {
		reason string
		uses   []memoryUse
		want   int
	}{
		"Burst":  {reason: "what was needed for a moment goes back once", uses: []memoryUse{{}, {500 * mb, 40 * mb, 300 * mb}, {501 * mb, 40 * mb, 300 * mb}, {502 * mb, 40 * mb, 41 * mb}}, want: 1},
		"Busy":   {reason: "the garbage collector does its own work", uses: []memoryUse{{}, {500 * mb, 40 * mb, 300 * mb}, {900 * mb, 40 * mb, 300 * mb}}},
		"Little": {reason: "less than a collection is worth", uses: []memoryUse{{}, {1 * mb, 40 * mb, 55 * mb}, {2 * mb, 40 * mb, 55 * mb}}},
		"Large":  {reason: "a part of what is in use", uses: []memoryUse{{}, {1 * mb, 400 * mb, 490 * mb}, {2 * mb, 400 * mb, 510 * mb}}, want: 1},
		"Shrunk": {reason: "less held than the last collection found", uses: []memoryUse{{}, {1 * mb, 400 * mb, 300 * mb}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				freed := 0
				giveBack(ctx, func() memoryUse {
					use := tc.uses[0]
					if tc.uses = tc.uses[1:]; len(tc.uses) == 0 {
						cancel()
						tc.uses = []memoryUse{use}
					}
					return use
				}, func() { freed++ })
				if freed != tc.want {
					t.Errorf("%s: memory was given back %d times, want %d", tc.reason, freed, tc.want)
				}
			})
		})
	}
}

// TestReadMemory sees garbage, and that it is gone.
func TestReadMemory(t *testing.T) {
	const size = 64 << 20
	before := readMemory()
	garbage := make([]byte, size)
	garbage[0] = 1
	held := readMemory()
	if held.Allocated-before.Allocated < size || held.Held < size {
		t.Errorf("%d bytes were allocated, and it went from %+v to %+v", size, before, held)
	}
	runtime.KeepAlive(garbage)
	freeMemory()
	if after := readMemory(); after.Held+size/2 > held.Held || after.Live > size/2 {
		t.Errorf("the garbage is still there: %+v, then %+v", held, after)
	}
}
