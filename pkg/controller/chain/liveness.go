package chain

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Passes records the running passes, so that a health check finds a hanging pass. A nil *Passes
// records nothing.
type Passes struct {
	Clock clock.PassiveClock

	mu      sync.Mutex
	last    int64
	running map[int64]pass
}

type pass struct {
	chain string
	since time.Time
}

// Begin records the start of a pass over a chain. The returned function records its end.
func (p *Passes) Begin(chain string) (end func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		p.running = map[int64]pass{}
	}
	p.last++
	number := p.last
	p.running[number] = pass{chain: chain, since: p.Clock.Now()}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, number)
	}
}

// Oldest returns the chain and the start time of the longest-running pass. If no pass is running,
// the time is zero.
func (p *Passes) Oldest() (chain string, since time.Time) {
	if p == nil {
		return "", time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, running := range p.running {
		if since.IsZero() || running.since.Before(since) {
			chain, since = running.chain, running.since
		}
	}
	return chain, since
}
