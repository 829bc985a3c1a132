package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// Pool lends control planes to tests and reuses them, because each start takes two seconds of
// processor time. It starts as many planes as tests borrow at the same time, up to Most. TestMain
// closes it.
type Pool struct {
	// Most is the number of tests that can have a plane at the same time. 0 is no limit. Further
	// tests wait.
	Most int

	mu sync.Mutex
	// lending is a semaphore: it has an element for each test with a plane.
	lending chan struct{}
	// free are the planes that no test uses. all lists every started plane.
	free, all []lent
}

// lent is a plane with its folder.
type lent struct {
	plane  *plane.Plane
	remove func() error
}

// Borrow is like Start without options, for a test that does not reconfigure kube-apiserver.
// Another test may have used the cluster before: then clean, if not nil, removes the remains of
// that test. The cluster returns to the pool when the test ends. After a failed test its state is
// unknown, so it does not return.
func (p *Pool) Borrow(t testing.TB, clean func(c *Cluster)) *Cluster {
	t.Helper()
	p.admit(t)
	l, used, err := p.take()
	if err != nil {
		t.Fatalf("cluster: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free = append(p.free, l)
	})
	c := &Cluster{Access: &Access{t: t, access: l.plane.Access}, plane: l.plane}
	if used && clean != nil {
		clean(c)
	}
	return c
}

// admit waits while Most tests have a plane. It frees the place when the test ends.
func (p *Pool) admit(t testing.TB) {
	if p.Most == 0 {
		return
	}
	p.mu.Lock()
	if p.lending == nil {
		p.lending = make(chan struct{}, p.Most)
	}
	lending := p.lending
	p.mu.Unlock()
	lending <- struct{}{}
	t.Cleanup(func() { <-lending })
}

// take returns a free plane, or starts a new one.
func (p *Pool) take() (l lent, used bool, err error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		l, p.free = p.free[n-1], p.free[:n-1]
		p.mu.Unlock()
		return l, true, nil
	}
	p.mu.Unlock()
	if l, err = start(); err != nil {
		return lent{}, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, l)
	return l, false, nil
}

// start starts a plane that outlives the test, but not this process.
func start() (lent, error) {
	tools, err := plane.Tools(context.Background(), os.Stderr)
	if err != nil {
		return lent{}, err
	}
	dir, remove, err := newFolder()
	if err != nil {
		return lent{}, err
	}
	running, err := plane.Start(context.Background(), optionsFor(dir, tools))
	if err != nil {
		return lent{}, errors.Join(err, remove())
	}
	return lent{plane: running, remove: remove}, nil
}

// Close stops all planes, including borrowed ones.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, l := range p.all {
		errs = append(errs, l.plane.Stop(), l.remove())
	}
	p.free, p.all = nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ending the clusters of a pool: %w", err)
	}
	return nil
}
