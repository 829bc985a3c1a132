package rollout

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

func (p *pass) remove(ctx context.Context, objects []*object) ([]Failure, error) {
	for i, o := range objects {
		objects[i] = p.leavingObject(o.step.ID) // re-read, because an earlier check may have changed the inventory
	}
	results, err := p.carryOut(ctx, objects, (*object).removeOne)
	if err != nil {
		return nil, err
	}
	var left []Failure
	for i, o := range objects {
		p.conclude(ctx, o, &results[i])
		if failure := results[i].failure; failure != nil {
			if failure.Reason == ReasonTerminating {
				p.detains(ctx, o, failure)
			}
			left = append(left, *failure)
		}
	}
	return left, nil
}

// removeOne deletes or releases one object. If the object changed since it was seen, it is read and
// judged again. A result without a failure means that the inventory can drop the object.
func (o *object) removeOne(ctx context.Context) objectResult {
	seen := o.seen
	if earlier, ok := o.backedOff(seen); ok {
		return earlier
	}
	switch sent := o.deleted.UID != ""; {
	case sent && seen.Presence == observe.Absent && !older(seen.ResourceVersion, o.memo.ResourceVersion):
		return objectResult{dropped: true} // our deletion was accepted, and the watch reports the object absent
	case sent && seen.Presence == observe.Present && o.deleted.Precondition == preconditionOf(seen) && o.engine.Clock.Now().Before(o.deleted.until):
		// The watch has not reported the deletion yet.
		return o.refuse(seen, ReasonTerminating, false, "is being deleted")
	}
	result := o.takeAway(ctx, seen)
	if targetclient.IsOvertaken(result.err) {
		result = o.takeAway(ctx, Seen{Presence: observe.Unknown})
	}
	// A failure is kept until the watched state changes or the next try is due, even if the object
	// was read in between.
	result.seen = seen
	result.dropped = result.err == nil && result.failure == nil
	return result
}

// takeAway deletes or releases the object as it was seen. It reads the object first if its watched
// state is missing or outdated.
func (o *object) takeAway(ctx context.Context, seen Seen) objectResult {
	if seen.Presence != observe.Present || seen.Late {
		// Absent may mean "without our label", and Unknown may mean that the kind is not served. A
		// lagging watch can miss a new controller or a request to keep the object.
		live, err := o.readLive(ctx, o.step.Ref)
		if err != nil {
			return o.vanished(ctx, err)
		}
		seen = live
	}
	if seen.Presence == observe.Absent {
		return objectResult{}
	}
	result := o.takePresent(ctx, seen)
	if seen.Version != o.memo.Version {
		result.version = seen.Version
	}
	return result
}

// takePresent deletes or releases an object that exists.
func (o *object) takePresent(ctx context.Context, seen Seen) objectResult {
	if ours, owner := o.who.MayRemove(*o.memo, seen.Observation); !ours {
		return o.left(owner)
	}
	switch {
	case o.Orphan[o.revision] || seen.Keep:
		return o.release(ctx, seen)
	case o.leaves():
		result := o.release(ctx, seen)
		if result.err == nil {
			result.events = append(result.events, o.event("Left", "left %s as it is: it existed before the extension", o.step.ID))
		}
		return result
	}
	if seen.Deleting {
		return o.terminating(seen)
	}
	if refusal, err := o.holdsOthers(ctx); err != nil {
		return objectResult{err: err}
	} else if refusal != "" {
		return o.refuse(seen, ReasonNotEmpty, true, refusal)
	}
	precondition := preconditionOf(seen)
	err := o.engine.Writer.Delete(ctx, o.step.Ref, precondition)
	switch {
	case apierrors.IsNotFound(err):
		return objectResult{}
	case err != nil:
		// It is possible that the kind is deleted, and that the watch has not reported it yet.
		return o.vanished(ctx, err)
	}
	result := o.refuse(seen, ReasonTerminating, false, "is being deleted")
	result.deleted = &precondition
	return result
}

func preconditionOf(seen Seen) targetclient.Precondition {
	return targetclient.Precondition{UID: seen.UID, ResourceVersion: seen.ResourceVersion}
}

// vanished handles an object that could not be read or deleted. If no version of its kind is
// served, the object may still exist. It is deleted only if nothing defines the kind any more.
func (o *object) vanished(ctx context.Context, err error) objectResult {
	if Classify(o.step.Ref, err).Reason != ReasonNotServed {
		return objectResult{err: err}
	}
	gone, err := o.undefined(ctx, o.step.GroupKind())
	switch {
	case err != nil:
		return objectResult{err: err}
	case gone:
		return objectResult{events: []Event{o.event("Gone", "%s was deleted with the definition of its kind", o.step.ID)}}
	}
	result := o.refuse(Seen{}, ReasonNotServed, false, "its kind is not served at the moment: it is not known whether the object exists")
	result.failure.Refused = true
	return result
}

// leaves reports whether the object is released because it existed before the chain.
func (o *object) leaves() bool { return o.memo.Adopted && !o.DeleteAdopted[o.revision] }

// left lets the inventory drop an object that the chain must not delete, and reports an event. An
// intent that was never carried out needs no event.
func (o *object) left(owner string) objectResult {
	if o.memo.Intent() {
		return objectResult{}
	}
	event := o.event("Left", "left %s as it is: it %s", o.step.ID, owner)
	event.Warning = true
	return objectResult{events: []Event{event}}
}

// release removes the chain's marks from an object and leaves it in the cluster.
func (o *object) release(ctx context.Context, seen Seen) objectResult {
	marks := targetclient.Marks{
		FieldManager: o.who.Manager,
		Labels:       []string{o.engine.Names.ChainLabel},
		NewOwner:     o.NewOwners[o.memo.Revision],
	}
	if marks.NewOwner == nil {
		// A new owner may give the object back, so the annotation stays with the fields. Removing
		// an annotation would also change the generation of a Deployment.
		marks.Annotations = []string{o.engine.Names.AppliedAnnotation}
	}
	err := o.engine.Writer.Release(ctx, o.step.Ref, preconditionOf(seen), marks)
	if err == nil || apierrors.IsNotFound(err) {
		return objectResult{}
	}
	return objectResult{err: err}
}

// leave returns the failure for an object that cannot be deleted yet.
func (o *object) leave(reason string, needsPerson bool, message string) Failure {
	return Failure{Ref: o.step.Ref, Reason: reason, Message: message, NeedsPerson: needsPerson}
}
