package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// repair restores an object of the chain after another writer changed it, and reports the lost
// values and the writer. It reads the live object first, and writes nothing if the manifest's
// fields are unchanged.
func (o *object) repair(ctx context.Context, action Action, seen Seen) objectResult {
	wait := o.repairs.patience(o.engine.Clock.Now())
	reports, err := o.reportsDrift(ctx)
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	if reports {
		wait = 0
	}
	if lost := o.repairs.lost; wait > 0 && (action == Verify || lost != "") {
		// Another writer changes the object all the time, so the last finding is used.
		result := o.idle()
		if action == Repair {
			result = o.contested(seen, lost)
		}
		result.wait = wait
		return result
	}
	live, err := o.engine.Reader.Read(ctx, o.step.Ref)
	if apierrors.IsNotFound(err) {
		return o.refuse(seen, ReasonWaiting, false, "was deleted while it was being looked at")
	}
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	now := Seen{Presence: observe.Present, Observation: o.engine.Names.Observe(live)}
	if decision := o.decide(now); decision.Action != Verify && decision.Action != Repair {
		return o.act(ctx, decision, now)
	}
	wanted, err := o.manifests.Decoded(ctx, o.step.Ref)
	if err != nil {
		return objectResult{seen: now, err: err}
	}
	left, yielded := managedfields.LeftTo(wanted, live, o.who.Manager, o.step.Policy.Yield, o.yielded())
	managedfields.Cut(wanted, yielded)
	events := o.yieldedNow(left)
	if right := managedfields.Contains(wanted, live.Object); right && (o.decide(now).Action == Verify || len(events) > 0) {
		return o.fine(now, yielded, events)
	}
	drifts := managedfields.FindDrift(wanted, live, o.who.Manager)
	lost := o.engine.describeDrift(o.step.ID, drifts, wanted, live.Object)
	if reports {
		return o.drifted(now, lost)
	}
	if wait > 0 {
		result := o.contested(now, lost)
		result.wait = wait
		return result
	}
	result := o.apply(repairing(ctx), now, onto(now), yielded, events...)
	if result.err == nil {
		// A refused repair has its own back-off and does not count as contested.
		result.looked, result.lost = true, lost
	}
	// An apply that changes nothing keeps the version. The difference was then a form that the
	// server does not store, such as a Secret's stringData.
	if result.applied && len(drifts) > 0 && result.entry.ResourceVersion != now.ResourceVersion {
		o.repaired(&result, managedfields.FirstManager(drifts), lost)
	}
	return result
}

// contested returns the failure for a repair that must wait, because another writer changes the
// object after each repair.
func (o *object) contested(seen Seen, lost string) objectResult {
	result := o.refuse(seen, ReasonContested, false, fmt.Sprintf("is changed back again and again: %s", lost))
	result.lost = lost
	o.engine.Metrics.Contested(o.step.ID)
	return result
}

// fine records that an object was read and equals its manifest, except for yielded fields.
func (o *object) fine(seen Seen, yielded []string, events []Event) objectResult {
	entry := entryOf(o.who, o.step, o.revision, o.stage, seen.Observation, yielded)
	entry.Adopted = o.adopted(entry.UID)
	return objectResult{outcome: outcome{applied: true}, entry: &entry, looked: true, events: events}
}
