// Package rendering pulls images and renders charts outside of the passes of controllers. A pass
// never waits for either: a user's chart that loops until its deadline must not delay the
// extensions of others. Users have fair shares of the workers (package fairshare).
package rendering

import (
	"context"
	"runtime"
	"sync"

	"github.com/penstock-project/penstock/pkg/fairshare"
)

const (
	// pulls is the number of images that are pulled at the same time. A pull mostly waits for a
	// registry.
	pulls = 16
	// leastRenders is the number of charts that are rendered at the same time on a machine with one
	// processor.
	leastRenders = 2
)

// Pool limits concurrent pulls and renderings. A user with running work gets no more than leaves room
// for others. A user without any gets a place at once.
type Pool struct{ pulls, renders *fairshare.Pool }

// NewPool returns a pool. A chart that is rendered takes a processor, so that one user's charts
// leave half of them to others.
func NewPool() *Pool {
	return &Pool{pulls: fairshare.NewPool(pulls), renders: fairshare.NewPool(int64(max(leastRenders, runtime.GOMAXPROCS(0))))}
}

// Pull runs a function when a user may pull. The error is the context's: it was not run.
func (p *Pool) Pull(ctx context.Context, user string, pull func()) error {
	return run(ctx, p.pulls, user, pull)
}

// Render waits for the user's turn and runs a function. It returns the error of the context
// when the function did not run.
func (p *Pool) Render(ctx context.Context, user string, render func()) error {
	return run(ctx, p.renders, user, render)
}

func run(ctx context.Context, places *fairshare.Pool, user string, do func()) error {
	if err := places.Take(ctx, user, 1); err != nil {
		return err
	}
	defer places.Return(user, 1)
	do()
	return nil
}

// Jobs have the results for the objects of one controller, one job for each object at a time.
type Jobs[T any] struct {
	mu      sync.Mutex
	jobs    map[string]*job[T]
	running sync.WaitGroup
}

type job[T any] struct {
	digest string
	cancel context.CancelFunc
	done   bool
	result T
}

// NewJobs returns no jobs.
func NewJobs[T any]() *Jobs[T] { return &Jobs[T]{jobs: map[string]*job[T]{}} }

// Do returns the result of a job, once. Before there is one, Do begins the job and returns false,
// and calls done when there is. Digest is of all that the result depends on: a job with another
// digest is given up. The context is that of the controller.
func (j *Jobs[T]) Do(ctx context.Context, name, digest string, do func(context.Context) T, done func()) (result T, ready bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.jobs[name]
	if known != nil && known.digest == digest {
		if known.done {
			delete(j.jobs, name)
		}
		return known.result, known.done
	}
	if known != nil {
		known.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	begun := &job[T]{digest: digest, cancel: cancel}
	j.jobs[name] = begun
	j.running.Go(func() {
		defer cancel()
		made := do(ctx)
		j.mu.Lock()
		current := j.jobs[name] == begun
		if current {
			begun.result, begun.done = made, true
		}
		j.mu.Unlock()
		if current {
			done()
		}
	})
	return result, false
}

// Forget gives up the job of an object, whether it has ended or not.
func (j *Jobs[T]) Forget(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.jobs[name]; known != nil {
		known.cancel()
		delete(j.jobs, name)
	}
}

// Wait waits until all jobs have ended, when the context of the controller has.
func (j *Jobs[T]) Wait() { j.running.Wait() }
