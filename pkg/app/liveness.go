package app

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// longestPass is the duration after which a pass over a chain counts as hanging. A pass never waits
// for the cluster to become ready. It takes the time of its requests, and each request has a
// timeout. The largest revision takes one to two minutes, and more with throttling.
const longestPass = 10 * time.Minute

// passes returns the longest-running pass. *chain.Passes implements it.
type passes interface {
	Oldest() (chain string, since time.Time)
}

func hanging(running passes, clock clock.PassiveClock) func() error {
	return func() error {
		chain, since := running.Oldest()
		if since.IsZero() || clock.Since(since) <= longestPass {
			return nil
		}
		return fmt.Errorf("the pass over extension %s has been running for %s, and should take at most %s",
			chain, clock.Since(since).Round(time.Second), longestPass)
	}
}
