package rollout

import (
	"context"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// decideCreateOnly decides the action for a create-only object. An existing object is as desired,
// with any owner and any content.
func decideCreateOnly(seen Seen) Decision {
	switch {
	case seen.Presence == observe.Absent:
		return Decision{Action: Create}
	case seen.Presence != observe.Present:
		return Decision{Deferred, "its kind is not being watched yet"}
	case seen.Deleting:
		return Decision{Deferred, "the existing object is being deleted; a new one is created when it is deleted"}
	default:
		return Decision{Action: Idle}
	}
}

// ensureExists creates a create-only object if it is absent. The write cannot overwrite an existing
// object and leaves no marks. The inventory has no entry for the object.
func (o *object) ensureExists(ctx context.Context) objectResult {
	seen := o.seen
	if seen.Presence == observe.Absent && o.existing != "" && older(seen.ResourceVersion, o.existing) {
		return objectResult{outcome: outcome{applied: true}} // the watch has not reported our create yet
	}
	if earlier, ok := o.backedOff(seen); ok {
		return earlier
	}
	switch decision := o.decide(seen); decision.Action {
	case Idle:
		return o.leaveExisting(ctx, seen)
	case Create:
		return o.createUnmarked(ctx, seen)
	default:
		return o.deferred(decision, seen)
	}
}

// createUnmarked creates a create-only object. If another writer has created it first, that is
// success: its content stays.
func (o *object) createUnmarked(ctx context.Context, seen Seen) objectResult {
	body, err := o.manifests.Without(ctx, o.step, nil)
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	live, err := o.engine.Writer.Apply(ctx, o.step.Ref, body, targetclient.ApplyOptions{FieldManager: o.who.Manager, CreateOnly: true})
	if targetclient.IsOvertaken(err) {
		return o.createdMeanwhile(ctx, seen)
	}
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	result := objectResult{outcome: outcome{applied: true}, seen: seen, existing: live.ResourceVersion}
	if o.existing != "" {
		o.repaired(&result, "", lostObject)
	}
	return result
}

// createdMeanwhile reads the object that another writer has created first.
func (o *object) createdMeanwhile(ctx context.Context, before Seen) objectResult {
	live, err := o.readLive(ctx, o.step.Ref)
	if err != nil {
		return objectResult{seen: before, err: err}
	}
	switch decision := decideCreateOnly(live); decision.Action {
	case Idle:
		return objectResult{outcome: outcome{applied: true}, seen: before, existing: live.ResourceVersion}
	case Create:
		return o.refuse(before, ReasonWaiting, false, "was created and deleted again meanwhile")
	default:
		return o.deferred(decision, live)
	}
}

// leaveExisting handles a create-only object that exists. If an older revision owned the object,
// leaveExisting releases it once no layer owns it any more.
func (o *object) leaveExisting(ctx context.Context, seen Seen) objectResult {
	result := objectResult{outcome: outcome{applied: true}, seen: seen, existing: seen.ResourceVersion}
	if o.memo == nil || o.owned {
		return result
	}
	now, err := o.readLive(ctx, o.recorded())
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	if ours, _ := o.who.MayRemove(*o.memo, now.Observation); ours && now.Presence == observe.Present {
		if released := o.release(ctx, now); released.err != nil {
			return objectResult{seen: seen, err: released.err}
		}
		result.events = []Event{o.event("Released", "%s is create-only from now on: it belongs to nobody", o.step.ID)}
	}
	result.dropped = true
	return result
}

// owns reports whether a layer lists the object without the policy create-only.
func (p *pass) owns(id manifest.ID) bool {
	for _, stg := range p.stages() {
		for _, step := range stg.Steps {
			if step.ID == id && !step.Policy.CreateOnly {
				return true
			}
		}
	}
	return false
}
