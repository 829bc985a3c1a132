package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// execute carries out the action for an object. If the object changed since it was seen, it is read
// and judged again.
func (o *object) execute(ctx context.Context) objectResult {
	if o.step.Policy.CreateOnly {
		return o.ensureExists(ctx)
	}
	seen := o.seen
	decision := o.decide(seen)
	if decision.Action == Idle {
		if failure := o.unreachable(seen); failure != nil {
			return objectResult{outcome: outcome{failure: failure}, seen: seen, watching: true}
		}
		return o.idle()
	}
	if decision.Action == Create {
		if o.leftTo != 0 {
			return o.refuse(seen, ReasonWaiting, false, fmt.Sprintf("was deleted, so that revision %d can create it again", o.leftTo))
		}
		if outcome, done := o.isDone(ctx, seen); done {
			return o.done(outcome)
		}
		if later, early := o.tooSoon(seen); early {
			return later
		}
	}
	if earlier, ok := o.backedOff(seen); ok {
		return earlier
	}
	result := o.act(ctx, decision, seen)
	if !targetclient.IsOvertaken(result.err) {
		return result
	}
	live, err := o.readLive(ctx, o.step.Ref)
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	again := o.decide(live)
	if again.Action == Adopt && decision.Action == Create {
		// The inventory must record first that the object existed before. The next pass records
		// that in its intent.
		result = o.refuse(live, ReasonWaiting, false, "exists already, and is taken over next")
		result.reread, result.found, result.wait = true, &live.Observation, time.Nanosecond
		return result
	}
	result = o.act(ctx, again, live)
	result.reread = true
	result.hidden = decision.Action == Create && live.Presence == observe.Present
	return result
}

// idle records the layer that the object now belongs to; it costs no request.
func (o *object) idle() objectResult {
	var entry Entry
	if o.memo != nil { // a shared object that is to be absent, and is, has none
		entry = *o.memo
	}
	entry = entry.settled(o.revision, o.stage, o.step.Version)
	return objectResult{outcome: outcome{applied: true}, entry: &entry}
}

// settled returns the entry of an object that needs no action: with its current place, and not
// marked for deletion.
func (e Entry) settled(revision int64, rank int, version string) Entry {
	e.Revision, e.Rank, e.Version, e.Doomed = revision, rank, version, false
	return e
}

func (o *object) act(ctx context.Context, decision Decision, seen Seen) objectResult {
	switch decision.Action {
	case Create:
		if reports, err := o.reportsDrift(ctx); err != nil {
			return objectResult{seen: seen, err: err}
		} else if reports {
			return o.absent(seen)
		}
		result := o.apply(ctx, seen, targetclient.ApplyOptions{CreateOnly: true}, nil)
		if result.err == nil && o.memo != nil && !o.memo.Intent() {
			// A new creation counts as a repair: another writer may delete the object each time.
			result.looked = true
			o.repaired(&result, "", lostObject)
		}
		return result
	case Adopt:
		return o.adopt(ctx, seen)
	case Update:
		return o.update(ctx, seen)
	case Repair, Verify:
		return o.repair(ctx, decision.Action, seen)
	case Idle:
		return o.idle()
	case Shared:
		return o.shared(ctx, seen)
	case Collision:
		return o.refuse(seen, ReasonCollision, true, decision.Message)
	default:
		return o.deferred(decision, seen)
	}
}

// onto returns the precondition of a write to the object as it was seen.
func onto(seen Seen) targetclient.ApplyOptions {
	return targetclient.ApplyOptions{UID: seen.UID, ResourceVersion: seen.ResourceVersion}
}

// apply writes the object's manifest without the yielded fields.
func (o *object) apply(ctx context.Context, seen Seen, options targetclient.ApplyOptions, yielded []string, events ...Event) objectResult {
	body, err := o.manifests.Without(ctx, o.step, yielded)
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	live, corrected, err := o.write(ctx, o.step.Ref, body, options)
	if err != nil {
		return objectResult{seen: seen, err: err, events: corrected}
	}
	entry := entryOf(o.who, o.step, o.revision, o.stage, o.engine.Names.Observe(live), yielded)
	entry.Adopted = !options.CreateOnly && o.adopted(entry.UID)
	return objectResult{outcome: outcome{applied: true}, entry: &entry, seen: seen, events: append(corrected, events...)}
}
