package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// repair brings an object of ours back to its manifest after someone changed it,
// and says what was lost to whom. It reads the live object first: a change that
// does not concern what we apply costs that read and no write.
func (p *pass) repair(ctx context.Context, t task, action Action, seen Seen) taskResult {
	wait := p.memory.patience(t.step.ID, p.engine.Clock.Now())
	if lost := p.memory.repairs[t.step.ID].lost; wait > 0 && (action == Verify || lost != "") {
		// Someone writes to it all the time: what was found last has to do.
		result := p.idle(t)
		if action == Recover {
			result = p.contested(t, seen, lost)
		}
		result.wait = wait
		return result
	}
	live, err := p.engine.Reader.Read(ctx, t.step.Ref)
	if apierrors.IsNotFound(err) {
		return p.refuse(t, seen, ReasonWaiting, false, "was deleted while it was being looked at")
	}
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	now := Seen{Presence: observe.Present, Observation: p.engine.Names.Observe(live)}
	if decision := p.decide(t, now); decision.Action != action && decision.Action != Verify && decision.Action != Recover {
		return p.act(ctx, t, decision, now)
	}
	wanted, err := p.manifests.Decoded(ctx, t.step.Ref)
	if err != nil {
		return taskResult{seen: now, err: err}
	}
	left, yielded := managedfields.LeftTo(wanted, live, p.who.Manager, t.step.Policy.Yield, p.yielded(t.step.ID))
	managedfields.Cut(wanted, yielded)
	events := p.yieldedNow(t, left)
	if right := managedfields.Contains(wanted, live.Object); right && (p.decide(t, now).Action == Verify || len(events) > 0) {
		return p.fine(t, now, yielded, events)
	}
	drifts := managedfields.FindDrift(wanted, live, p.who.Manager)
	lost := p.engine.describeDrift(t.step.ID, drifts, wanted, live.Object)
	if wait > 0 {
		result := p.contested(t, now, lost)
		result.wait = wait
		return result
	}
	result := p.apply(repairing(ctx), t, now, onto(now), yielded, events...)
	if result.err == nil {
		// A repair that is refused has its own back-off, and nobody to fight with.
		result.looked, result.lost = true, lost
	}
	// An apply that changes nothing keeps the version: what differed was a form
	// that the server does not keep, such as a Secret's stringData.
	if result.applied && len(drifts) > 0 && result.entry.ResourceVersion != now.ResourceVersion {
		event := p.event(t, "Repaired", "repaired %s: %s", t.step.ID, lost)
		event.Warning = true
		result.events = append(result.events, event)
		p.engine.Metrics.Repaired(t.step.ID, managedfields.FirstManager(drifts))
	}
	return result
}

// contested is a repair that has to wait, because someone changes the object again
// and again.
func (p *pass) contested(t task, seen Seen, lost string) taskResult {
	result := p.refuse(t, seen, ReasonContested, false, fmt.Sprintf("is changed back again and again: %s", lost))
	result.lost = lost
	p.engine.Metrics.Contested(t.step.ID)
	return result
}

// fine notes that an object was looked at and found right, but for fields that are
// left to others.
func (p *pass) fine(t task, seen Seen, yielded []string, events []Event) taskResult {
	entry := entryOf(p.who, t.step, p.Layers[t.layer], t.stage, seen.Observation, yielded)
	entry.Adopted = p.adopted(t.step.ID, entry.UID)
	return taskResult{outcome: outcome{applied: true}, entry: &entry, looked: true, events: events}
}
