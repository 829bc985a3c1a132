//go:build integration

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/framework/penstock"
)

type settings struct {
	duration   time.Duration
	extensions int
	seed       uint64
}

// readSettings reads the environment: SOAK is the duration of disturbances, EXTENSIONS the number
// of chains, and SEED the seed of random choices. Without SOAK, the duration is usual.
func readSettings(t *testing.T, usual time.Duration) settings {
	t.Helper()
	s := settings{duration: usual, extensions: 200, seed: uint64(time.Now().UnixNano())}
	if os.Getenv("FULL") == "1" {
		s.duration = 10 * time.Minute
	}
	if given := os.Getenv("SOAK"); given != "" && given != "1" {
		duration, err := time.ParseDuration(given)
		if err != nil {
			t.Fatalf("SOAK: %v", err)
		}
		s.duration = duration
	}
	if n, err := strconv.Atoi(os.Getenv("EXTENSIONS")); err == nil && n > 0 {
		s.extensions = n
	}
	if seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		s.seed = seed
	}
	return s
}

// TestSoak runs all disturbances: first with kills, and then, for the last third of the time, twice
// without kills, to measure the growth of a single process.
func TestSoak(t *testing.T) {
	if os.Getenv("SOAK") == "" || os.Getenv("FAULTS") != "" {
		t.Skip("it takes minutes: run it by `make test-slice N=soak`")
	}
	s := readSettings(t, 3*time.Minute)
	fmt.Printf("%d extensions, %s of trouble, SEED=%d\n", s.extensions, s.duration, s.seed)
	w := newSoakPlane(t, s, penstock.Build(t))

	w.say("installing")
	for _, c := range w.chains {
		w.author.upgrade(w.random("install", c.name), c)
	}
	w.settle()

	w.say("trouble, with kills")
	w.trouble(s.duration*2/3, true)
	w.settle()

	// The same process runs the same twice, so that its caches have their final size before the
	// comparison.
	w.restart()
	w.say("trouble, without kills")
	w.trouble(s.duration/6, false)
	w.settle()
	before := w.rest("before")
	w.say("trouble, without kills, again")
	w.trouble(s.duration/6, false)
	w.settle()
	w.grown(before, w.rest("after"))

	w.say("deleting everything")
	for _, c := range w.chains {
		w.author.delete(c)
	}
	w.settle()
	w.witness()
	w.say("done: %s", w.tally.String())
}

func (w *soakPlane) trouble(duration time.Duration, kills bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), duration)
	defer cancel()
	var running sync.WaitGroup
	const authors, meddlers = 4, 2
	for i := range authors {
		running.Go(func() { w.write(ctx, w.random("author", fmt.Sprint(i)), i, authors) })
	}
	for i := range meddlers {
		running.Go(func() { w.meddle(ctx, w.random("meddler", fmt.Sprint(i, kills))) })
	}
	if kills {
		w.kill(ctx, w.random("killer", ""))
	}
	running.Wait()
}

// random returns a random source for a part of the test, derived from the seed.
func (w *soakPlane) random(part, name string) *rand.Rand {
	sum := w.settings.seed
	for _, b := range []byte(part + "/" + name) {
		sum = sum*1099511628211 + uint64(b)
	}
	return rand.New(rand.NewPCG(w.settings.seed, sum))
}
