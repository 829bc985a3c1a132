package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// decide applies the table to one object.
func (p *pass) decide(t task, seen Seen) Decision {
	return Decide(p.who, t.step, seen, p.inventory.Entry(t.step.ID))
}

// execute does what has to be done with an object, and decides once more from a
// live read when the object turns out to be another than was seen.
func (p *pass) execute(ctx context.Context, t task) taskResult {
	if t.step.Policy.CreateOnly {
		return p.ensureExists(ctx, t)
	}
	seen := p.observed(t.step.ID)
	decision := p.decide(t, seen)
	if decision.Action == Idle {
		if failure := p.unreachable(t, seen); failure != nil {
			return taskResult{outcome: outcome{failure: failure}, seen: seen, watching: true}
		}
		return p.idle(t)
	}
	if next, waits := p.makesRoom(t); decision.Action == Create && waits {
		return p.refuse(t, seen, ReasonWaiting, false, fmt.Sprintf("was deleted, so that revision %d can create it again", next))
	}
	if decision.Action == Create {
		if outcome, done := p.isDone(ctx, t, seen); done {
			return p.done(t, outcome)
		}
		if later, early := p.tooSoon(t, seen); early {
			return later
		}
	}
	if earlier, ok := p.backedOff(t, seen); ok {
		return earlier
	}
	result := p.act(ctx, t, decision, seen)
	if !targetclient.IsOvertaken(result.err) {
		return result
	}
	live, err := p.readLive(ctx, t.step.Ref)
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	result = p.act(ctx, t, p.decide(t, live), live)
	result.reread = true
	result.hidden = decision.Action == Create && live.Presence == observe.Present
	return result
}

// idle notes which layer the object belongs to by now; that costs no request.
func (p *pass) idle(t task) taskResult {
	entry := p.settled(p.inventory.Entries[t.step.ID], t.place, t.step)
	return taskResult{outcome: outcome{applied: true}, entry: &entry}
}

// settled is the entry of an object of which nothing has to be done: as it was, but
// where the object belongs now, and it is not to go.
func (p *pass) settled(entry Entry, at place, step stage.Step) Entry {
	entry.Revision, entry.Rank, entry.Version, entry.Doomed = p.Layers[at.layer].Revision, at.stage, step.Version, false
	return entry
}

// act does one decision.
func (p *pass) act(ctx context.Context, t task, decision Decision, seen Seen) taskResult {
	switch decision.Action {
	case Create:
		events := p.created(t)
		result := p.apply(ctx, t, seen, targetclient.ApplyOptions{CreateOnly: true}, nil, events...)
		// What is created again counts as a repair: somebody may delete it each time.
		result.looked = result.err == nil && len(events) > 0
		return result
	case Adopt:
		return p.adopt(ctx, t, seen)
	case Update:
		return p.update(ctx, t, seen)
	case Recover, Verify:
		return p.repair(ctx, t, decision.Action, seen)
	case Idle:
		return p.idle(t)
	case Shared:
		return p.shared(ctx, t, seen)
	case Collision:
		return p.refuse(t, seen, ReasonCollision, true, decision.Message)
	default:
		return p.deferred(t, decision, seen)
	}
}

// created tells of an object that was there before and had to be made again.
func (p *pass) created(t task) []Event {
	if memo := p.inventory.Entry(t.step.ID); memo == nil || memo.Intent() {
		return nil
	}
	return []Event{p.event(t, "Recreated", "created %s again, which someone had deleted", t.step.ID)}
}

// onto is the precondition of a write onto what was seen.
func onto(seen Seen) targetclient.ApplyOptions {
	return targetclient.ApplyOptions{UID: seen.UID, ResourceVersion: seen.ResourceVersion}
}

// apply writes the object's manifest without the fields that are left to others.
func (p *pass) apply(ctx context.Context, t task, seen Seen, options targetclient.ApplyOptions, yielded []string, events ...Event) taskResult {
	body, err := p.manifests.Without(ctx, t.step, yielded)
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	live, corrected, err := p.write(ctx, t, t.step.Ref, body, options)
	if err != nil {
		return taskResult{seen: seen, err: err, events: corrected}
	}
	entry := entryOf(p.who, t.step, p.Layers[t.layer], t.stage, p.engine.Names.Observe(live), yielded)
	entry.Adopted = !options.CreateOnly && p.adopted(t.step.ID, entry.UID)
	return taskResult{outcome: outcome{applied: true}, entry: &entry, seen: seen, events: append(corrected, events...)}
}

// readLive reads an object past the watches.
func (p *pass) readLive(ctx context.Context, ref manifest.Ref) (Seen, error) {
	live, err := p.engine.Reader.ReadMetadata(ctx, ref)
	if apierrors.IsNotFound(err) {
		return Seen{Presence: observe.Absent}, nil
	}
	if err != nil {
		return Seen{}, err
	}
	return p.seen(live), nil
}
