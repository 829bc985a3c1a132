package rollout

import "github.com/penstock-project/penstock/pkg/rollout/observe"

// deferred says what an object waits for.
func (p *pass) deferred(t task, decision Decision, seen Seen) taskResult {
	switch {
	case seen.Presence == observe.Present && seen.Deleting:
		return p.terminating(t, seen)
	case seen.Presence == observe.Unknown:
		return taskResult{outcome: outcome{failure: p.unknown(t, decision.Message)}, seen: seen, watching: true}
	}
	return p.refuse(t, seen, ReasonWaiting, false, decision.Message)
}

// unknown says why nothing is known of an object.
func (p *pass) unknown(t task, message string) *Failure {
	failure := &Failure{Ref: t.step.Ref, Reason: ReasonWaiting, Message: message, Unknown: true}
	trouble := p.engine.trouble(t.step.ID)
	if trouble == nil {
		return failure // the answer is on its way
	}
	why := Classify(t.step.Ref, trouble)
	failure.Message, failure.NeedsPerson, failure.Refused = why.Message, why.NeedsPerson, why.Refused
	switch why.Reason {
	case ReasonUnreachable:
		failure.Reason = ReasonUnreachable
	case ReasonNotServed:
		// What nobody serves is not there for anybody.
		failure.Reason, failure.Unknown = ReasonNotServed, false
	default:
		failure.Reason = ReasonUnwatched
	}
	return failure
}

// unreachable says why an object that was as it should be may not be so any more: the
// cluster does not answer. It is neither wrong nor lost then, and nothing is done.
func (p *pass) unreachable(t task, seen Seen) *Failure {
	if !seen.Stale {
		return nil
	}
	if failure := p.unknown(t, "its watch does not answer"); failure.Reason == ReasonUnreachable {
		return failure
	}
	return nil
}
