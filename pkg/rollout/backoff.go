package rollout

import (
	"fmt"
	"time"

	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// backoff doubles from firstRetry to lastRetry.
func backoff(count int) time.Duration {
	wait := firstRetry
	for range count {
		if wait *= 2; wait >= lastRetry {
			return lastRetry
		}
	}
	return wait
}

// backedOff returns the last failure again while it is too early for another try of
// the same write.
func (p *pass) backedOff(t task, seen Seen) (taskResult, bool) {
	now := p.engine.Clock.Now()
	if late := p.memory.overtaken[t.step.ID]; now.Before(late.until) {
		result := p.refuse(t, seen, ReasonWaiting, false, fmt.Sprintf(
			"others wrote to it between each read and write of %d passes; the next try waits", late.count))
		result.backedOff, result.wait = true, late.until.Sub(now)
		return result, true
	}
	last, failed := p.memory.failed[t.step.Ref]
	if !failed || last.attempt != attemptOf(t, seen) || !now.Before(last.until) || last.failure.Reason == ReasonCollision && p.mayTake(t, seen.Chain) {
		return taskResult{}, false
	}
	return taskResult{outcome: outcome{failure: &last.failure}, seen: seen, backedOff: true}, true
}

// attemptOf tells apart what a manifest may be written onto, and, of a shared object, in
// which state it may. How far the watch of an absent object has come means nothing.
func attemptOf(t task, seen Seen) attempt {
	what := attempt{presence: seen.Presence}
	if t.step.Policy.Own == stage.Shared {
		what.policy = fmt.Sprintf("%+v", t.step.Policy)
	}
	if seen.Presence == observe.Present {
		what.resourceVersion = seen.ResourceVersion
	}
	return what
}
