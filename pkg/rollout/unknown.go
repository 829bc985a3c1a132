package rollout

import "github.com/penstock-project/penstock/pkg/rollout/observe"

// deferred says what an object waits for.
func (o *object) deferred(decision Decision, seen Seen) objectResult {
	switch {
	case seen.Presence == observe.Present && seen.Deleting:
		return o.terminating(seen)
	case seen.Presence == observe.Unknown:
		return objectResult{outcome: outcome{failure: o.unknown(decision.Message)}, seen: seen, watching: true}
	}
	return o.refuse(seen, ReasonWaiting, false, decision.Message)
}

// unknown says why nothing is known of an object.
func (o *object) unknown(message string) *Failure {
	failure := &Failure{Ref: o.step.Ref, Reason: ReasonWaiting, Message: message, Unknown: true}
	trouble := o.engine.trouble(o.step.ID)
	if trouble == nil {
		return failure // the answer is on its way
	}
	why := Classify(o.step.Ref, trouble)
	failure.Message, failure.NeedsPerson, failure.Refused = why.Message, why.NeedsPerson, why.Refused
	switch why.Reason {
	case ReasonUnreachable:
		failure.Reason = ReasonUnreachable
	case ReasonNotServed:
		// Objects of a kind that nobody serves are not there for anybody.
		failure.Reason, failure.Unknown = ReasonNotServed, false
	default:
		failure.Reason = ReasonUnwatched
	}
	return failure
}

// unreachable says why an object that was as it should be might not be so any more: the
// cluster does not answer. It is neither wrong nor lost then, and nothing is done.
func (o *object) unreachable(seen Seen) *Failure {
	if !seen.Stale {
		return nil
	}
	if failure := o.unknown("its watch does not answer"); failure.Reason == ReasonUnreachable {
		return failure
	}
	return nil
}
