package memory

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
)

// TestGiveBack gives memory back when it is quiet and worth the work, and then
// only.
func TestGiveBack(t *testing.T) {
	const mb = 1 << 20
	cases := map[string]struct {
		reason      string
		uses        []usage
		heap, pages int
	}{
		"Burst":    {reason: "what was needed for a moment goes back once", uses: []usage{{}, {500 * mb, 40 * mb, 300 * mb, 0}, {501 * mb, 40 * mb, 300 * mb, 0}, {502 * mb, 40 * mb, 41 * mb, 0}}, heap: 1},
		"Busy":     {reason: "the garbage collector does its own work", uses: []usage{{}, {500 * mb, 40 * mb, 300 * mb, 90 * mb}, {900 * mb, 40 * mb, 300 * mb, 90 * mb}}},
		"Little":   {reason: "less than a collection is worth", uses: []usage{{}, {1 * mb, 40 * mb, 45 * mb, 0}, {2 * mb, 40 * mb, 45 * mb, 0}}},
		"Empty":    {reason: "of a server with nothing in it a third is garbage", uses: []usage{{}, {1 * mb, 18 * mb, 27 * mb, 0}, {2 * mb, 18 * mb, 19 * mb, 0}}, heap: 1},
		"Large":    {reason: "a part of what is in use", uses: []usage{{}, {1 * mb, 400 * mb, 440 * mb, 0}, {2 * mb, 400 * mb, 460 * mb, 0}}, heap: 1},
		"Shrunk":   {reason: "less held than the last collection found", uses: []usage{{}, {1 * mb, 400 * mb, 300 * mb, 0}}},
		"Database": {reason: "the file was read, and its pages go back once; what stays is the program", uses: []usage{{}, {1 * mb, 0, 0, 160 * mb}, {2 * mb, 0, 0, 60 * mb}, {3 * mb, 0, 0, 70 * mb}}, pages: 1},
		"Again":    {reason: "some of it was read again", uses: []usage{{}, {1 * mb, 0, 0, 160 * mb}, {2 * mb, 0, 0, 60 * mb}, {3 * mb, 0, 0, 80 * mb}, {4 * mb, 0, 0, 61 * mb}, {5 * mb, 0, 0, 62 * mb}}, pages: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				heap, pages := 0, 0
				spare := &Spare{
					read: func() usage {
						use := tc.uses[0]
						if tc.uses = tc.uses[1:]; len(tc.uses) == 0 {
							cancel()
							tc.uses = []usage{use}
						}
						return use
					},
					heap:  func() { heap++ },
					pages: func() { pages++ },
				}
				spare.GiveBack(ctx)
				if heap != tc.heap || pages != tc.pages {
					t.Errorf("%s: the heap was given back %d times and the database %d times, want %d and %d", tc.reason, heap, pages, tc.heap, tc.pages)
				}
			})
		})
	}
}

// TestReadMemory sees garbage, and that it is gone.
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
	if runtime.GOOS == "linux" && before.Mapped == 0 {
		t.Error("nothing of this program is in memory")
	}
}
