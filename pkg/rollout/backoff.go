package rollout

import (
	"fmt"
	"time"

	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

func backoff(count int) time.Duration {
	wait := firstRetry
	for range count {
		if wait *= 2; wait >= lastRetry {
			return lastRetry
		}
	}
	return wait
}

// backedOff returns the last failure again until the next try of the same write is due.
func (o *object) backedOff(seen Seen) (objectResult, bool) {
	now := o.engine.Clock.Now()
	if now.Before(o.late.until) {
		result := o.refuse(seen, ReasonWaiting, false, fmt.Sprintf(
			"other clients wrote to it between each read and write of %d passes; the next try waits", o.late.count))
		result.backedOff, result.wait = true, o.late.until.Sub(now)
		return result, true
	}
	last := o.failed
	if last.attempt != o.attempt(seen) || !now.Before(last.until) || last.failure.Reason == ReasonCollision && o.mayTake(seen.Chain) {
		return objectResult{}, false
	}
	return objectResult{outcome: outcome{failure: &last.failure}, seen: seen, backedOff: true}, true
}

// attempt identifies the state that a manifest is written onto: the live version and, for a shared
// object, the policy. It ignores the resource version of an absent object, which only tells how
// current the watch is.
func (o *object) attempt(seen Seen) attempt {
	what := attempt{presence: seen.Presence}
	if o.step.Policy.Own == stage.Shared {
		what.policy = fmt.Sprintf("%+v", o.step.Policy)
	}
	if seen.Presence == observe.Present {
		what.resourceVersion = seen.ResourceVersion
	}
	return what
}
