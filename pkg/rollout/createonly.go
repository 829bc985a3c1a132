package rollout

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// decideCreateOnly is the rule of create-only objects: one that exists is as
// wanted, whoever made it and whatever is in it.
func decideCreateOnly(seen Seen) Decision {
	switch {
	case seen.Presence == observe.Absent:
		return Decision{Action: Create}
	case seen.Presence != observe.Present:
		return Decision{Deferred, "its kind is not being watched yet"}
	case seen.Deleting:
		return Decision{Deferred, "the existing object is being deleted; a new one is created when it is gone"}
	default:
		return Decision{Action: Idle}
	}
}

// ensureExists makes sure that a create-only object exists. It writes what cannot
// overwrite anything, and no mark of ours: from its first moment on the object
// belongs to whoever wants it, and the inventory does not know it.
func (p *pass) ensureExists(ctx context.Context, t task) taskResult {
	seen := p.observed(t.step.ID)
	made, known := p.memory.existing[t.step.ID]
	if seen.Presence == observe.Absent && made != "" && older(seen.ResourceVersion, made) {
		return taskResult{outcome: outcome{applied: true}} // the watch has not come to what we just made
	}
	if earlier, ok := p.backedOff(t, seen); ok {
		return earlier
	}
	switch decision := p.decide(t, seen); decision.Action {
	case Idle:
		return p.leaveExisting(ctx, t, seen)
	case Create:
		return p.createUnmarked(ctx, t, seen, known)
	default:
		return p.deferred(t, decision, seen)
	}
}

// createUnmarked creates a create-only object. When somebody else was faster, that is success: theirs is
// the content that counts.
func (p *pass) createUnmarked(ctx context.Context, t task, seen Seen, again bool) taskResult {
	body, err := p.manifests.Without(ctx, t.step, nil)
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	live, err := p.engine.Writer.Apply(ctx, t.step.Ref, body, targetclient.ApplyOptions{FieldManager: p.who.Manager, CreateOnly: true})
	if targetclient.IsOvertaken(err) {
		return p.createdMeanwhile(ctx, t, seen)
	}
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	result := taskResult{outcome: outcome{applied: true}, seen: seen, existing: live.ResourceVersion}
	if again {
		result.events = []Event{p.event(t, "Recreated", "created %s again, which someone had deleted", t.step.ID)}
	}
	return result
}

// createdMeanwhile looks at the object that somebody else has made meanwhile.
func (p *pass) createdMeanwhile(ctx context.Context, t task, before Seen) taskResult {
	live, err := p.readLive(ctx, t.step.Ref)
	if err != nil {
		return taskResult{seen: before, err: err}
	}
	switch decision := decideCreateOnly(live); decision.Action {
	case Idle:
		return taskResult{outcome: outcome{applied: true}, seen: before, existing: live.ResourceVersion}
	case Create:
		return p.refuse(t, before, ReasonWaiting, false, "was created and deleted again meanwhile")
	default:
		return p.deferred(t, decision, live)
	}
}

// leaveExisting is a create-only object that exists. One that the chain had owned until
// a newer revision said otherwise is let go, as soon as no layer owns it any more.
func (p *pass) leaveExisting(ctx context.Context, t task, seen Seen) taskResult {
	result := taskResult{outcome: outcome{applied: true}, seen: seen, existing: seen.ResourceVersion}
	entry := p.inventory.Entry(t.step.ID)
	if entry == nil || p.owns(t.step.ID) {
		return result
	}
	ref := p.inventory.Ref(t.step.ID)
	live, err := p.engine.Reader.ReadMetadata(ctx, ref)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return taskResult{seen: seen, err: err}
	default:
		now := p.seen(live)
		if ours, _ := p.who.MayRemove(*entry, now.Observation); ours {
			if released := p.release(ctx, task{place: t.place, step: t.step}, now); released.err != nil {
				return taskResult{seen: seen, err: released.err}
			}
			result.events = []Event{p.event(t, "Released", "%s is create-only from now on: it belongs to nobody", t.step.ID)}
		}
	}
	result.disowned = true
	return result
}

// owns is true when a layer wants an object that is not create-only there.
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
