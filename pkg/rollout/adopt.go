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

// adopt takes over an existing object. One patch moves the fields of the former manager to the
// chain's manager. Then one apply writes the manifest, which removes the fields that only the
// former manager had set.
//
// After a crash between the two writes, the chain's manager owns the fields of the old content. The
// next pass continues with the apply.
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
	// The apply must not take fields from an autoscaler, not even for a moment.
	left, yielded, err := o.yieldedFieldsOf(ctx, seen, wanted)
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

// unproven returns the reason why an object does not count as restored from a backup, or "". It
// compares the live content, because another store's key may have made the recorded digest.
func (o *object) unproven(ctx context.Context, seen Seen, wanted map[string]any) (string, error) {
	memo := o.memo
	if memo != nil && !memo.Intent() || !o.who.restored(o.step, seen.Observation, memo) || seen.Applied == o.step.Digest {
		return "", nil
	}
	_, owner := o.who.Owns(seen.Observation, memo)
	if decision := decideForeign(o.step, seen.Observation, memo, owner); decision.Action == Adopt {
		return "", nil // the policy allows adoption of any content
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

// keptFrom returns the result for an object that its namespace protects, or whose protection is
// unknown (err).
func (o *object) keptFrom(seen Seen, refusal string, err error) objectResult {
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	result := o.refuse(seen, ReasonCollision, true, refusal)
	result.protected = true
	return result
}

// adopted reports whether the object existed before the chain and was not part of an installed
// extension. The inventory entry has this fact; after a crash, the intent has it.
func (o *object) adopted(uid types.UID) bool {
	memo := o.memo
	return memo != nil && memo.Adopted && (memo.Intent() || memo.UID == uid)
}

// adoptWithAll adopts an object whose extra fields the server refuses to remove. It restores the
// former managedFields and applies the manifest without removing a field.
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

// update applies the manifest to an object of the chain. If another writer changed the object,
// update reads it first: an autoscaler may own fields that the manifest must not take.
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
	yielded, said, err := o.yieldedFields(ctx, seen)
	events = append(events, said...)
	if err != nil {
		return objectResult{seen: seen, err: err, events: events}
	}
	return o.apply(ctx, seen, onto(seen), yielded, events...)
}

// formerly returns the last applied manifest in two forms: as written, and as Penstock would apply
// it now. It returns nil if the two forms are equal, or if the manifest is unchanged since. An
// earlier Penstock may have applied the manifest as written (see managedfields.Reform).
func (o *object) formerly(ctx context.Context, seen Seen) (written, applied map[string]any) {
	memo := o.memo
	if memo == nil || memo.UID != seen.UID || memo.Digest == "" || memo.Digest == o.step.Digest {
		return nil, nil
	}
	return o.manifests.otherwise(ctx, o.recorded())
}

// yieldedFields returns the fields of the manifest that are left to other managers, and events for the
// fields that the chain owned before. It reads the object only if the decision needs live values.
func (o *object) yieldedFields(ctx context.Context, seen Seen) ([]string, []Event, error) {
	recorded := o.yielded()
	if seen.Managed == nil && !managedfields.OnlyGrows(o.step.ID) {
		return recorded, nil, nil
	}
	wanted, err := o.manifests.Decoded(ctx, o.step.Ref)
	if err != nil {
		return nil, nil, err
	}
	left, all, err := o.yieldedFieldsOf(ctx, seen, wanted)
	return all, o.yieldedNow(left), err
}

// yieldedFieldsOf is yieldedFields for an object whose managedFields are known, or that only grows.
func (o *object) yieldedFieldsOf(ctx context.Context, seen Seen, wanted map[string]any) (managedfields.Yields, []string, error) {
	recorded := o.yielded()
	if !managedfields.OnlyGrows(o.step.ID) && !managedfields.MayBeScaledToZero(wanted, seen.Managed, o.who.Manager) {
		left := managedfields.Yielding(wanted, seen.Managed, o.who.Manager, o.step.Policy.Yield)
		return left, left.And(managedfields.StillYielded(recorded, seen.Managed, o.who.Manager)), nil
	}
	// If the object has changed since it was seen, the server refuses the write.
	live, err := o.engine.Reader.Read(ctx, o.step.Ref)
	if err != nil {
		return nil, nil, err
	}
	left, all := managedfields.LeftTo(wanted, live, o.who.Manager, o.step.Policy.Yield, recorded)
	return left, all, nil
}

// changed reports whether the chain's entry in managedFields differs from the recorded entry.
// Without a record, after a crash or the loss of the store, it returns true.
func (o *object) changed(seen Seen) bool {
	memo := o.memo
	if memo == nil || memo.UID != seen.UID {
		return true
	}
	entry, _ := seen.Entry(o.who.Manager)
	return entry.Digest != memo.ManagedEntry
}

// wiped reports whether the object has lost the chain's managedFields entry while its manifest
// changed. An apply would then never remove the fields that the new manifest omits.
func (o *object) wiped(seen Seen) bool {
	memo := o.memo
	if memo == nil || memo.UID != seen.UID || memo.ManagedEntry == "" || memo.Digest == o.step.Digest {
		return false
	}
	_, found := seen.Entry(o.who.Manager)
	return !found
}

// restore applies the earlier manifest, except fields that are left to other managers, so that the
// engine owns its fields again. It does nothing if the earlier manifest or its API version does not
// exist any more.
func (o *object) restore(ctx context.Context, seen Seen) (Seen, []Event, error) {
	memo := o.memo
	before := o.step
	before.Ref = manifest.Ref{ID: o.step.ID, Version: memo.Version, Digest: memo.Digest}
	// Without the manifest or its kind, nothing can be restored. Other errors are returned.
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

// write applies a body. If managedFields had been wiped, the server also assigns the chain's fields
// to BeforeFirstApply; write removes them from that entry (see managedfields.Disown).
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
