package clusterversion

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// freshFor is the lifetime of a cached answer.
	freshFor   = time.Minute
	askTimeout = 15 * time.Second
)

// Known caches the versions of clusters, by the name of their target. It is safe for concurrent
// use.
//
// While a cluster is upgraded, its API servers have different versions, and a connection reaches
// any of them. So a higher version counts only after two answers, freshFor apart. A lower version
// counts at once.
type Known struct {
	read    func(ctx context.Context, target string) (string, error)
	clock   clock.WithTicker
	changed chan struct{}

	mu       sync.Mutex
	clusters map[string]*answers
}

// answers holds the state for one cluster.
type answers struct {
	asking bool
	asked  time.Time
	// counts is the current version; known is false before the first answer.
	counts Kubernetes
	known  bool
	// higher is an unconfirmed higher version, and since is the time of its first answer; both are
	// zero if there is none.
	higher Kubernetes
	since  time.Time
	failed error
}

// New returns a cache. Read requests the version of a target, such as v1.36.3.
func New(c clock.WithTicker, read func(ctx context.Context, target string) (string, error)) *Known {
	return &Known{read: read, clock: c, changed: make(chan struct{}, 1), clusters: map[string]*answers{}}
}

// Changed returns a channel that gets an element when a version becomes known or changes.
func (k *Known) Changed() <-chan struct{} { return k.changed }

// Version returns the last known version of a cluster. It never waits for a request: known is false
// before the first answer. Then why is the error of the last request, or nil while the first
// request runs.
func (k *Known) Version(ctx context.Context, target string) (found Kubernetes, known bool, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.clusters[target]
	if a == nil {
		a = &answers{}
		k.clusters[target] = a
	}
	if !a.asking && (a.asked.IsZero() || k.clock.Since(a.asked) >= freshFor) {
		a.asking, a.asked = true, k.clock.Now()
		go k.ask(ctx, target)
	}
	return a.counts, a.known, a.failed
}

// ask sends a request, and repeats it while a higher version needs confirmation.
func (k *Known) ask(ctx context.Context, target string) {
	for {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		text, err := k.read(asking, target)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if !k.took(ctx, target, text, err) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-k.clock.After(freshFor):
		}
	}
}

// took stores an answer, and reports whether ask must repeat the request.
func (k *Known) took(ctx context.Context, target, text string, err error) (again bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.clusters[target]
	a.asked = k.clock.Now()
	var found Kubernetes
	if err == nil {
		found, err = ParseKubernetes(text)
	}
	before, was := a.failed, a.known
	a.failed = err
	switch {
	case err != nil:
		a.asking = false
		if before == nil || before.Error() != err.Error() {
			klog.FromContext(ctx).Error(err, "The version of a cluster is not known", "target", target)
			k.signal(!was)
		}
		return false
	case a.counts.Less(found) && a.known && (a.since.IsZero() || a.asked.Sub(a.since) < freshFor):
		if a.since.IsZero() || found.Less(a.higher) {
			a.higher, a.since = found, a.asked
		}
		return true
	}
	other := !a.known || a.counts != found
	a.counts, a.known, a.higher, a.since, a.asking = found, true, Kubernetes{}, time.Time{}, false
	k.signal(other)
	return false
}

func (k *Known) signal(is bool) {
	if !is {
		return
	}
	select {
	case k.changed <- struct{}{}:
	default: // an element that is still in the channel reports this change too
	}
}
