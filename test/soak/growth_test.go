//go:build integration

package soak

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// state is the size of an idle process.
type state struct {
	goroutines, heap float64
}

// rest measures several times and returns the minimum, to exclude running work. PROFILE names a
// folder for the heap profile.
func (w *soakPlane) rest(name string) state {
	w.t.Helper()
	const looks = 12
	best := state{goroutines: 1e9, heap: 1e18}
	var profile string
	for range looks {
		pause(w.t.Context(), 2*time.Second)
		profile = w.server.Fetch(w.t, w.Config(), "/debug/pprof/heap?gc=1") // after a garbage collection
		metrics := w.server.Fetch(w.t, w.Config(), "/metrics")
		now := state{goroutines: sample(metrics, "go_goroutines"), heap: sample(metrics, "go_memstats_heap_alloc_bytes")}
		best.goroutines, best.heap = min(best.goroutines, now.goroutines), min(best.heap, now.heap)
	}
	if dir := os.Getenv("PROFILE"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "heap-"+name+".pprof"), []byte(profile), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.say("%.0f goroutines, %.0f MB of heap", best.goroutines, best.heap/1e6)
	return best
}

// grown compares the sizes of a process before and after trouble. Some growth is allowed: a chain
// keeps some archived revisions.
func (w *soakPlane) grown(before, after state) {
	w.t.Helper()
	if most := before.goroutines*1.1 + 50; after.goroutines > most {
		w.t.Errorf("%.0f goroutines have become %.0f, more than %.0f", before.goroutines, after.goroutines, most)
	}
	if most := before.heap*1.25 + 15e6; after.heap > most {
		w.t.Errorf("%.0f MB of heap have become %.0f, more than %.0f", before.heap/1e6, after.heap/1e6, most/1e6)
	}
}

// sample returns the value of a metric without labels.
func sample(metrics, name string) float64 {
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			// A value that cannot be parsed belongs to another metric.
			number, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return number
		}
	}
	return 0
}
