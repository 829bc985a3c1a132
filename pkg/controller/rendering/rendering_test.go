package rendering

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestFair: while any number of one user's charts loop, another user's chart is rendered without
// waiting, and half of the slots stay free.
func TestFair(t *testing.T) {
	for _, loops := range []int{1, 24, 200} {
		t.Run(fmt.Sprint(loops), func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			p, jobs := NewPool(), NewJobs[error]()
			var looping atomic.Int64
			began := make(chan struct{}, loops)
			for i := range loops {
				jobs.Do(ctx, fmt.Sprint("erin-", i), "1", func(ctx context.Context) error {
					return p.Render(ctx, "erin", func() {
						looping.Add(1)
						began <- struct{}{}
						<-ctx.Done()
					})
				}, func() {})
			}
			<-began
			ready := make(chan struct{}, 1)
			innocent := func() (error, bool) {
				return jobs.Do(ctx, "innocent", "1", func(ctx context.Context) error { return p.Render(ctx, "ian", func() {}) }, func() { ready <- struct{}{} })
			}
			if _, is := innocent(); is {
				t.Fatal("it is ready before it was begun")
			}
			<-ready // all other charts loop, so it cannot wait for their end
			if err, is := innocent(); err != nil || !is {
				t.Errorf("ready is %t: %v", is, err)
			}
			if n, most := looping.Load(), p.renders.Size()/2; n > most {
				t.Errorf("%d charts of one user are rendered at a time, at most %d leave room for others", n, most)
			}
			end()
			jobs.Wait()
		})
	}
}

// TestJobs: there is one job for each object and digest, its result is returned once, and an
// obsolete job ends.
func TestJobs(t *testing.T) {
	jobs := NewJobs[string]()
	var told sync.WaitGroup
	said := func(result string) func(context.Context) string {
		return func(context.Context) string { return result }
	}
	told.Add(1)
	jobs.Do(t.Context(), "a", "1", said("one"), told.Done)
	told.Wait()
	if result, ready := jobs.Do(t.Context(), "a", "1", said("again"), nil); result != "one" || !ready {
		t.Errorf("got %q, %t", result, ready)
	}
	// The result was consumed, so the next job computes it again.
	ended := make(chan struct{}, 2)
	waits := func(ctx context.Context) string {
		<-ctx.Done()
		ended <- struct{}{}
		return "given up"
	}
	never := func() { t.Error("it is told of a job that was given up") }
	jobs.Do(t.Context(), "a", "1", waits, never)
	if _, ready := jobs.Do(t.Context(), "a", "1", nil, nil); ready {
		t.Error("it is ready while it runs")
	}
	told.Add(1)
	jobs.Do(t.Context(), "a", "2", said("two"), told.Done)
	<-ended
	told.Wait()
	if result, ready := jobs.Do(t.Context(), "a", "2", nil, nil); result != "two" || !ready {
		t.Errorf("got %q, %t", result, ready)
	}
	jobs.Do(t.Context(), "b", "1", waits, never)
	jobs.Forget("b")
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a job that was forgotten goes on")
	}
	jobs.Wait()
}
