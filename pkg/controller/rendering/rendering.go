// Package rendering pulls images and renders charts outside of the passes of controllers. A pass
// never waits for either: a user's chart that loops until its deadline must not delay the
// extensions of other users. Users have fair shares of the workers (package fairshare).
package rendering

import (
	"context"
	"runtime"
	"sync"

	"github.com/penstock-project/penstock/pkg/fairshare"
)

const (
	// pulls is the number of parallel pulls. A pull mostly waits for a registry.
	pulls = 16
	// leastRenders is the number of parallel renderings on a machine with one processor.
	leastRenders = 2
)

// Pool limits concurrent pulls and renderings. Users with running work always leave slots free for
// other users. A user without running work gets a slot at once.
type Pool struct{ pulls, renders *fairshare.Pool }

// NewPool returns a pool. A rendering occupies a processor. One user's charts leave half of the
// processors to other users.
func NewPool() *Pool {
	return &Pool{pulls: fairshare.NewPool(pulls), renders: fairshare.NewPool(int64(max(leastRenders, runtime.GOMAXPROCS(0))))}
}

// Pull waits for the user's turn, and runs a function. If ctx ends first, it returns that error
// without running the function.
func (p *Pool) Pull(ctx context.Context, user string, pull func()) error {
	return run(ctx, p.pulls, user, pull)
}

// Render waits for the user's turn, and runs a function. If ctx ends first, it returns that error
// without running the function.
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

// Jobs holds the results for the objects of one controller. An object has one job at a time.
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

// NewJobs returns Jobs without any job.
func NewJobs[T any]() *Jobs[T] { return &Jobs[T]{jobs: map[string]*job[T]{}} }

// Do returns the result of a job, once. Without a result, Do starts the job, returns false, and
// calls done later. digest covers all inputs of the result: a job with another digest is given up.
// ctx is the context of the controller.
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

// Forget drops the job of an object, also a running one.
func (j *Jobs[T]) Forget(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.jobs[name]; known != nil {
		known.cancel()
		delete(j.jobs, name)
	}
}

// Wait waits until all jobs have ended, after the context of the controller has ended.
func (j *Jobs[T]) Wait() { j.running.Wait() }
