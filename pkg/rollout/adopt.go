package rollout

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// adopt makes an object of somebody else ours: one guarded patch takes over the
// fields of whoever kept it, and one apply makes it as the manifest says, which
// removes what only they had set.
//
// A crash in between leaves the object as it was, with our field manager beside
// its fields, and the next pass goes on with the apply.
func (p *pass) adopt(ctx context.Context, t task, seen Seen) taskResult {
	if seen.Managed == nil {
		live, err := p.readLive(ctx, t.step.Ref)
		if err != nil {
			return taskResult{seen: seen, err: err}
		}
		if decision := p.decide(t, live); decision.Action != Adopt {
			return p.act(ctx, t, decision, live)
		}
		seen = live
	}
	if refusal, err := p.protected(ctx, t, seen); err != nil || refusal != "" {
		return p.keptFrom(t, seen, refusal, err)
	}
	wanted, err := p.manifests.Decoded(ctx, t.step.Ref)
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	if why, err := p.unproven(ctx, t, seen, wanted); err != nil {
		return taskResult{seen: seen, err: err}
	} else if why != "" {
		return p.refuse(t, seen, ReasonCollision, true, why)
	}
	before, message := seen.Managed, fmt.Sprintf("took over %s, which existed already", t.step.ID)
	if p.who.restored(t.step, seen.Observation, p.inventory.Entry(t.step.ID)) {
		message = fmt.Sprintf("took over %s again, which has the marks of this extension, as a restore from a backup leaves it", t.step.ID)
	}
	plan := managedfields.TakeOver(wanted, before, p.who.Manager, t.step.APIVersion())
	if plan != nil {
		live, err := p.engine.Writer.Reassign(ctx, t.step.Ref, preconditionOf(seen), plan.Fields)
		if err != nil {
			return taskResult{seen: seen, err: err}
		}
		seen = p.seen(live)
		message += fmt.Sprintf("; what only %s had set is removed", plan.Whose())
	} else {
		before = managedfields.Without(before, p.who.Manager)
	}
	// Nothing is taken from an autoscaler, not even for a moment.
	left, yielded, err := p.leftOf(ctx, t, seen, wanted)
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	if len(left) > 0 {
		message += fmt.Sprintf("; left %s", left)
	}
	result := p.apply(ctx, t, seen, onto(seen), yielded, p.event(t, "Adopted", "%s", message))
	if apierrors.IsInvalid(result.err) && managedfields.ApplyOf(seen.Managed, p.who.Manager) != nil {
		result = p.adoptWithAll(ctx, t, seen, before, yielded, result.err)
	}
	if result.entry != nil {
		result.entry.Adopted = !seen.Installed
	}
	return result
}

// unproven is why an object is not taken for one that a restore brought back: its digest is keyed
// by another store, so its content has to say it.
func (p *pass) unproven(ctx context.Context, t task, seen Seen, wanted map[string]any) (string, error) {
	memo := p.inventory.Entry(t.step.ID)
	if memo != nil && !memo.Intent() || !p.who.restored(t.step, seen.Observation, memo) || seen.Applied == t.step.Digest {
		return "", nil
	}
	_, owner := p.who.Owns(seen.Observation, memo)
	if decision := decideForeign(t.step, seen.Observation, memo, owner); decision.Action == Adopt {
		return "", nil // whatever is in it
	} else if live, err := p.engine.Reader.Read(ctx, t.step.Ref); err != nil {
		return "", err
	} else if !managedfields.Contains(withoutMetadata(wanted), live.Object) {
		return decision.Message, nil
	}
	return "", nil
}

func withoutMetadata(object map[string]any) map[string]any {
	content := maps.Clone(object)
	delete(content, "metadata")
	return content
}

// keptFrom is the result for an object that is protected, or of which that is not known.
func (p *pass) keptFrom(t task, seen Seen, refusal string, err error) taskResult {
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	result := p.refuse(t, seen, ReasonCollision, true, refusal)
	result.protected = true
	return result
}

// adopted is true for an object that existed before and that nobody had installed, by the
// record or, after a crash, by the intent.
func (p *pass) adopted(id manifest.ID, uid types.UID) bool {
	memo := p.inventory.Entry(id)
	return memo != nil && memo.Adopted && (memo.Intent() || memo.UID == uid)
}

// adoptWithAll gives back what was taken over, because the server refuses to have
// it removed, and makes the object ours with all that is in it.
func (p *pass) adoptWithAll(ctx context.Context, t task, seen Seen, before []metav1.ManagedFieldsEntry, yielded []string, why error) taskResult {
	live, err := p.engine.Writer.Reassign(ctx, t.step.Ref, preconditionOf(seen), before)
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	seen = p.seen(live)
	event := p.event(t, "Adopted", "took over %s, which existed already, with fields that the manifest does not have: the server refuses their removal: %s",
		t.step.ID, Explain(t.step.Ref, why))
	event.Warning = true
	return p.apply(ctx, t, seen, onto(seen), yielded, event)
}

// update makes our object as the manifest says. When somebody has changed it since
// we looked last, that is looked at before: it may be an autoscaler, whose fields a
// new manifest must not take.
func (p *pass) update(ctx context.Context, t task, seen Seen) taskResult {
	written, applied := p.formerly(ctx, t, seen)
	if (written != nil || p.changed(t, seen)) && seen.Managed == nil {
		live, err := p.readLive(ctx, t.step.Ref)
		if err != nil {
			return taskResult{seen: seen, err: err}
		}
		if decision := p.decide(t, live); decision.Action != Update {
			return p.act(ctx, t, decision, live)
		}
		seen = live
	}
	var events []Event
	if p.wiped(t, seen) {
		restored, said, err := p.restore(ctx, t, seen)
		if err != nil {
			return taskResult{seen: seen, err: err, events: said}
		}
		seen, events = restored, said
	}
	if fields := managedfields.Reform(seen.Managed, p.who.Manager, written, applied); fields != nil {
		live, err := p.engine.Writer.Reassign(ctx, t.step.Ref, preconditionOf(seen), fields)
		if err != nil {
			return taskResult{seen: seen, err: err, events: events}
		}
		seen = p.seen(live)
	}
	yielded, said, err := p.leftIn(ctx, t, seen)
	events = append(events, said...)
	if err != nil {
		return taskResult{seen: seen, err: err, events: events}
	}
	return p.apply(ctx, t, seen, onto(seen), yielded, events...)
}

// formerly returns the manifest of our object that was applied last, as it was written and as it
// would be applied now, where the two differ and another manifest follows: an earlier Penstock
// may have applied it as it was written (see managedfields.Reform).
func (p *pass) formerly(ctx context.Context, t task, seen Seen) (written, applied map[string]any) {
	memo := p.inventory.Entry(t.step.ID)
	if memo == nil || memo.UID != seen.UID || memo.Digest == "" || memo.Digest == t.step.Digest {
		return nil, nil
	}
	return p.manifests.otherwise(ctx, p.inventory.Ref(t.step.ID))
}

// leftIn returns the fields of a manifest that are left to others, and tells of those that had
// been ours before. It reads the object where only its values tell.
func (p *pass) leftIn(ctx context.Context, t task, seen Seen) ([]string, []Event, error) {
	recorded := p.yielded(t.step.ID)
	if seen.Managed == nil && !managedfields.OnlyGrows(t.step.ID) {
		return recorded, nil, nil
	}
	wanted, err := p.manifests.Decoded(ctx, t.step.Ref)
	if err != nil {
		return nil, nil, err
	}
	left, all, err := p.leftOf(ctx, t, seen, wanted)
	return all, p.yieldedNow(t, left), err
}

// leftOf is leftIn for an object whose managedFields were seen, or that only grows.
func (p *pass) leftOf(ctx context.Context, t task, seen Seen, wanted map[string]any) (managedfields.Yields, []string, error) {
	recorded := p.yielded(t.step.ID)
	if !managedfields.OnlyGrows(t.step.ID) && !managedfields.MayBeScaledToZero(wanted, seen.Managed, p.who.Manager) {
		left := managedfields.Yielding(wanted, seen.Managed, p.who.Manager, t.step.Policy.Yield)
		return left, left.And(managedfields.StillYielded(recorded, seen.Managed, p.who.Manager)), nil
	}
	// When it has changed in between, the write onto what was seen is refused.
	live, err := p.engine.Reader.Read(ctx, t.step.Ref)
	if err != nil {
		return nil, nil, err
	}
	left, all := managedfields.LeftTo(wanted, live, p.who.Manager, t.step.Policy.Yield, recorded)
	return left, all, nil
}

// changed is true for our object when our entry is another than we recorded, or when
// nothing of it is recorded: a crash, or a store that was lost, kept us from it, and
// nobody can tell what happened to the object since it was written.
func (p *pass) changed(t task, seen Seen) bool {
	memo := p.inventory.Entry(t.step.ID)
	if memo == nil || memo.UID != seen.UID {
		return true
	}
	entry, _ := seen.Entry(p.who.Manager)
	return entry.Digest != memo.ManagedEntry
}

// wiped is true for our object when nobody knows any more which fields of it are
// ours, and its manifest has become another one since: what the new one has not
// would stay for ever.
func (p *pass) wiped(t task, seen Seen) bool {
	memo := p.inventory.Entry(t.step.ID)
	if memo == nil || memo.UID != seen.UID || memo.ManagedEntry == "" || memo.Digest == t.step.Digest {
		return false
	}
	_, found := seen.Entry(p.who.Manager)
	return !found
}

// restore applies the manifest before, so that its fields are known as ours again,
// but for those that are left to others. Where that manifest is gone, or the version that
// it is written in, there is nothing to know them by.
func (p *pass) restore(ctx context.Context, t task, seen Seen) (Seen, []Event, error) {
	memo := p.inventory.Entry(t.step.ID)
	before := t.step
	before.Ref = manifest.Ref{ID: t.step.ID, Version: memo.Version, Digest: memo.Digest}
	wanted, err := p.manifests.Decoded(ctx, before.Ref)
	if err != nil {
		return seen, nil, nil
	}
	left := managedfields.Yielding(wanted, seen.Managed, p.who.Manager, before.Policy.Yield)
	body, err := p.manifests.Without(ctx, before, left.And(memo.Yielded))
	if err != nil {
		return seen, nil, nil
	}
	live, events, err := p.write(ctx, t, before.Ref, body, onto(seen))
	switch {
	case meta.IsNoMatchError(err):
		return seen, events, nil
	case err != nil:
		return Seen{}, events, err
	}
	return p.seen(live), events, nil
}

// write applies a body, and makes sure that what is ours is nobody's from before
// managedFields were wiped.
func (p *pass) write(ctx context.Context, t task, ref manifest.Ref, body []byte, options targetclient.ApplyOptions) (*metav1.PartialObjectMetadata, []Event, error) {
	live, events, err := p.send(ctx, t, ref, body, options)
	if err != nil {
		return nil, events, err
	}
	rest := managedfields.Disown(live.ManagedFields, p.who.Manager)
	if rest == nil {
		return live, events, nil
	}
	live, err = p.engine.Writer.Reassign(ctx, ref, targetclient.Precondition{UID: live.UID, ResourceVersion: live.ResourceVersion}, rest)
	return live, events, err
}

// seen is the answer to a write or a read past the watches.
func (p *pass) seen(live *metav1.PartialObjectMetadata) Seen {
	seen := Seen{Presence: observe.Present, Observation: p.engine.Names.Observe(live), Version: live.GroupVersionKind().Version}
	seen.Managed = append([]metav1.ManagedFieldsEntry{}, live.ManagedFields...)
	return seen
}
