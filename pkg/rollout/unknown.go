package rollout

import "github.com/penstock-project/penstock/pkg/rollout/observe"

// deferred returns the failure for an object that waits.
func (o *object) deferred(decision Decision, seen Seen) objectResult {
	switch {
	case seen.Presence == observe.Present && seen.Deleting:
		return o.terminating(seen)
	case seen.Presence == observe.Unknown:
		return objectResult{outcome: outcome{failure: o.unknown(decision.Message)}, seen: seen, watching: true}
	}
	return o.refuse(seen, ReasonWaiting, false, decision.Message)
}

// unknown returns the failure for an object whose state is unknown.
func (o *object) unknown(message string) *Failure {
	failure := &Failure{Ref: o.step.Ref, Reason: ReasonWaiting, Message: message, Unknown: true}
	trouble := o.engine.trouble(o.step.ID)
	if trouble == nil {
		return failure // the watch will answer soon
	}
	why := Classify(o.step.Ref, trouble)
	failure.Message, failure.NeedsPerson, failure.Refused = why.Message, why.NeedsPerson, why.Refused
	switch why.Reason {
	case ReasonUnreachable:
		failure.Reason = ReasonUnreachable
	case ReasonNotServed:
		// If no server serves the kind, its objects do not exist for any client.
		failure.Reason, failure.Unknown = ReasonNotServed, false
	default:
		failure.Reason = ReasonUnwatched
	}
	return failure
}

// unreachable returns a failure if the cluster does not answer, so that an object that was fine may
// have changed. The object is neither wrong nor lost then, and the engine does nothing.
func (o *object) unreachable(seen Seen) *Failure {
	if !seen.Stale {
		return nil
	}
	if failure := o.unknown("its watch does not answer"); failure.Reason == ReasonUnreachable {
		return failure
	}
	return nil
}
