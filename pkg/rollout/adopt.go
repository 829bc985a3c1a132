package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// adopt makes an object of somebody else ours: one guarded patch takes over the
// fields of the manager that kept it, and one apply makes it as the manifest says, which
// removes what only they had set.
//
// A crash in between leaves the object as it was, with our field manager beside
// its fields, and the next pass goes on with the apply.
func (o *object) adopt(ctx context.Context, seen Seen) objectResult {
	if seen.Managed == nil {
		live, err := o.readLive(ctx, o.step.Ref)
		if err != nil {
			return objectResult{seen: seen, err: err}
		}
		if decision := o.decide(live); decision.Action != Adopt {
			return o.act(ctx, decision, live)
		}
		seen = live
	}
	if refusal, err := o.protected(ctx, seen); err != nil || refusal != "" {
		return o.keptFrom(seen, refusal, err)
	}
	wanted, err := o.manifests.Decoded(ctx, o.step.Ref)
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	if why, err := o.unproven(ctx, seen, wanted); err != nil {
		return objectResult{seen: seen, err: err}
	} else if why != "" {
		return o.refuse(seen, ReasonCollision, true, why)
	}
	before, message := seen.Managed, fmt.Sprintf("took over %s, which existed already", o.step.ID)
	if o.who.restored(o.step, seen.Observation, o.memo) {
		message = fmt.Sprintf("took over %s again, which has the marks of this extension, as a restore from a backup leaves it", o.step.ID)
	}
	plan := managedfields.TakeOver(wanted, before, o.who.Manager, o.step.APIVersion())
	if plan != nil {
		live, err := o.engine.Writer.Reassign(ctx, o.step.Ref, preconditionOf(seen), plan.Fields)
		if err != nil {
			return objectResult{seen: seen, err: err}
		}
		seen = o.asSeen(live)
		message += fmt.Sprintf("; what only %s had set is removed", plan.Whose())
	} else {
		before = managedfields.Without(before, o.who.Manager)
	}
	// Nothing is taken from an autoscaler, not even for a moment.
	left, yielded, err := o.leftOf(ctx, seen, wanted)
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	if len(left) > 0 {
		message += fmt.Sprintf("; left %s", left)
	}
	result := o.apply(ctx, seen, onto(seen), yielded, o.event("Adopted", "%s", message))
	if apierrors.IsInvalid(result.err) && managedfields.ApplyOf(seen.Managed, o.who.Manager) != nil {
		result = o.adoptWithAll(ctx, seen, before, yielded, result.err)
	}
	if result.entry != nil {
		result.entry.Adopted = !seen.Installed
	}
	return result
}

// unproven returns the reason why an object does not count as brought back by a restore, or "".
// Another store's key made its recorded digest, so its live content is compared.
func (o *object) unproven(ctx context.Context, seen Seen, wanted map[string]any) (string, error) {
	memo := o.memo
	if memo != nil && !memo.Intent() || !o.who.restored(o.step, seen.Observation, memo) || seen.Applied == o.step.Digest {
		return "", nil
	}
	_, owner := o.who.Owns(seen.Observation, memo)
	if decision := decideForeign(o.step, seen.Observation, memo, owner); decision.Action == Adopt {
		return "", nil // whatever is in it
	} else if live, err := o.engine.Reader.Read(ctx, o.step.Ref); err != nil {
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
func (o *object) keptFrom(seen Seen, refusal string, err error) objectResult {
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	result := o.refuse(seen, ReasonCollision, true, refusal)
	result.protected = true
	return result
}

// adopted is true for an object that existed before and that nobody had installed, by the
// record or, after a crash, by the intent.
func (o *object) adopted(uid types.UID) bool {
	memo := o.memo
	return memo != nil && memo.Adopted && (memo.Intent() || memo.UID == uid)
}

// adoptWithAll gives back what was taken over, because the server refuses to have
// it removed, and makes the object ours with all that is in it.
func (o *object) adoptWithAll(ctx context.Context, seen Seen, before []metav1.ManagedFieldsEntry, yielded []string, why error) objectResult {
	live, err := o.engine.Writer.Reassign(ctx, o.step.Ref, preconditionOf(seen), before)
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	seen = o.asSeen(live)
	event := o.event("Adopted", "took over %s, which existed already, with fields that the manifest does not have: the server refuses their removal: %s",
		o.step.ID, Explain(o.step.Ref, why))
	event.Warning = true
	return o.apply(ctx, seen, onto(seen), yielded, event)
}

// update makes our object as the manifest says. When somebody has changed it since
// we looked last, that is looked at before: it may be an autoscaler, whose fields a
// new manifest must not take.
func (o *object) update(ctx context.Context, seen Seen) objectResult {
	written, applied := o.formerly(ctx, seen)
	if (written != nil || o.changed(seen)) && seen.Managed == nil {
		live, err := o.readLive(ctx, o.step.Ref)
		if err != nil {
			return objectResult{seen: seen, err: err}
		}
		if decision := o.decide(live); decision.Action != Update {
			return o.act(ctx, decision, live)
		}
		seen = live
	}
	var events []Event
	if o.wiped(seen) {
		restored, said, err := o.restore(ctx, seen)
		if err != nil {
			return objectResult{seen: seen, err: err, events: said}
		}
		seen, events = restored, said
	}
	if fields := managedfields.Reform(seen.Managed, o.who.Manager, written, applied); fields != nil {
		live, err := o.engine.Writer.Reassign(ctx, o.step.Ref, preconditionOf(seen), fields)
		if err != nil {
			return objectResult{seen: seen, err: err, events: events}
		}
		seen = o.asSeen(live)
	}
	yielded, said, err := o.leftIn(ctx, seen)
	events = append(events, said...)
	if err != nil {
		return objectResult{seen: seen, err: err, events: events}
	}
	return o.apply(ctx, seen, onto(seen), yielded, events...)
}

// formerly returns the manifest of our object that was applied last, as it was written and as it
// would be applied now, where the two differ and another manifest follows: an earlier Penstock
// may have applied it as it was written (see managedfields.Reform).
func (o *object) formerly(ctx context.Context, seen Seen) (written, applied map[string]any) {
	memo := o.memo
	if memo == nil || memo.UID != seen.UID || memo.Digest == "" || memo.Digest == o.step.Digest {
		return nil, nil
	}
	return o.manifests.otherwise(ctx, o.recorded())
}

// leftIn returns the fields of a manifest that are left to others, and tells of those that had
// been ours before. It reads the object where only its values tell.
func (o *object) leftIn(ctx context.Context, seen Seen) ([]string, []Event, error) {
	recorded := o.yielded()
	if seen.Managed == nil && !managedfields.OnlyGrows(o.step.ID) {
		return recorded, nil, nil
	}
	wanted, err := o.manifests.Decoded(ctx, o.step.Ref)
	if err != nil {
		return nil, nil, err
	}
	left, all, err := o.leftOf(ctx, seen, wanted)
	return all, o.yieldedNow(left), err
}

// leftOf is leftIn for an object whose managedFields were seen, or that only grows.
func (o *object) leftOf(ctx context.Context, seen Seen, wanted map[string]any) (managedfields.Yields, []string, error) {
	recorded := o.yielded()
	if !managedfields.OnlyGrows(o.step.ID) && !managedfields.MayBeScaledToZero(wanted, seen.Managed, o.who.Manager) {
		left := managedfields.Yielding(wanted, seen.Managed, o.who.Manager, o.step.Policy.Yield)
		return left, left.And(managedfields.StillYielded(recorded, seen.Managed, o.who.Manager)), nil
	}
	// When it has changed in between, the write onto what was seen is refused.
	live, err := o.engine.Reader.Read(ctx, o.step.Ref)
	if err != nil {
		return nil, nil, err
	}
	left, all := managedfields.LeftTo(wanted, live, o.who.Manager, o.step.Policy.Yield, recorded)
	return left, all, nil
}

// changed is true for our object when our entry is another than we recorded, or when
// nothing of it is recorded: a crash, or a store that was lost, kept us from it, and
// nobody can tell what happened to the object since it was written.
func (o *object) changed(seen Seen) bool {
	memo := o.memo
	if memo == nil || memo.UID != seen.UID {
		return true
	}
	entry, _ := seen.Entry(o.who.Manager)
	return entry.Digest != memo.ManagedEntry
}

// wiped is true for our object when nobody knows any more which fields of it are
// ours, and its manifest has become another one since: what the new one has not
// would stay for ever.
func (o *object) wiped(seen Seen) bool {
	memo := o.memo
	if memo == nil || memo.UID != seen.UID || memo.ManagedEntry == "" || memo.Digest == o.step.Digest {
		return false
	}
	_, found := seen.Entry(o.who.Manager)
	return !found
}

// restore applies the earlier manifest, so that the engine owns its fields again, except
// fields that are left to others. It does nothing when the earlier manifest, or the version
// in which it is written, is gone.
func (o *object) restore(ctx context.Context, seen Seen) (Seen, []Event, error) {
	memo := o.memo
	before := o.step
	before.Ref = manifest.Ref{ID: o.step.ID, Version: memo.Version, Digest: memo.Digest}
	// Without the manifest, or its kind, nothing can be restored. Of another error nothing follows.
	var gone *bodyError
	isGone := func(err error) bool { return errors.As(err, &gone) || meta.IsNoMatchError(err) }
	wanted, err := o.manifests.Decoded(ctx, before.Ref)
	switch {
	case isGone(err):
		return seen, nil, nil
	case err != nil:
		return Seen{}, nil, err
	}
	left := managedfields.Yielding(wanted, seen.Managed, o.who.Manager, before.Policy.Yield)
	body, err := o.manifests.Without(ctx, before, left.And(memo.Yielded))
	switch {
	case isGone(err):
		return seen, nil, nil
	case err != nil:
		return Seen{}, nil, err
	}
	live, events, err := o.write(ctx, before.Ref, body, onto(seen))
	switch {
	case meta.IsNoMatchError(err):
		return seen, events, nil
	case err != nil:
		return Seen{}, events, err
	}
	return o.asSeen(live), events, nil
}

// write applies a body, and makes sure that what is ours is nobody's from before
// managedFields were wiped.
func (o *object) write(ctx context.Context, ref manifest.Ref, body []byte, options targetclient.ApplyOptions) (*metav1.PartialObjectMetadata, []Event, error) {
	live, events, err := o.send(ctx, ref, body, options)
	if err != nil {
		return nil, events, err
	}
	rest := managedfields.Disown(live.ManagedFields, o.who.Manager)
	if rest == nil {
		return live, events, nil
	}
	live, err = o.engine.Writer.Reassign(ctx, ref, targetclient.Precondition{UID: live.UID, ResourceVersion: live.ResourceVersion}, rest)
	return live, events, err
}
