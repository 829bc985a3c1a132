package clusterversion

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// freshFor is the time for which an answer is cached.
	freshFor = time.Minute
	// askTimeout bounds one request.
	askTimeout = 15 * time.Second
)

// Known knows the versions of clusters, by the name of their target. It is safe for concurrent use.
//
// While a cluster is upgraded, its API servers have different versions, and a connection reaches
// one of them. So a higher version counts when it was answered twice, freshFor apart; a lower one
// counts at once.
type Known struct {
	read    func(ctx context.Context, target string) (string, error)
	clock   clock.WithTicker
	changed chan struct{}

	mu       sync.Mutex
	clusters map[string]*answers
}

// answers are the answers of one cluster.
type answers struct {
	asking bool
	asked  time.Time
	// counts is the version that counts; known is false before the first answer.
	counts Kubernetes
	known  bool
	// higher is an answer above it, and since is when it was given first; zero for none.
	higher Kubernetes
	since  time.Time
	// failed is the error of the last request, nil after a success.
	failed error
}

// New returns a cache of versions. Read reads the version of a target, such as v1.36.3.
func New(c clock.WithTicker, read func(ctx context.Context, target string) (string, error)) *Known {
	return &Known{read: read, clock: c, changed: make(chan struct{}, 1), clusters: map[string]*answers{}}
}

// Changed has an element when a version is another one, or is known for the first time.
func (k *Known) Changed() <-chan struct{} { return k.changed }

// Version returns the version of a cluster as it was answered last. It never waits: known is false
// before the first answer, and why says why there is none, nil while it is on its way.
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

// ask sends one request, and another one when the answer needs confirmation.
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

// took takes an answer, and returns whether to ask again soon.
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
	default: // one that has not been taken yet stands for this one too
	}
}
