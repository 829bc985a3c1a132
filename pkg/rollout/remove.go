package rollout

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// remove deletes objects of one rank and returns those that are not gone.
func (p *pass) remove(ctx context.Context, objects []*object) ([]Failure, error) {
	for i, o := range objects {
		objects[i] = p.leaver(o.step.ID) // as it is now
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

// removeOne deletes or releases one object, and judges once more from a live read
// when it turns out to be another than was seen. No failure means that the
// inventory can forget it.
func (o *object) removeOne(ctx context.Context) objectResult {
	seen := o.seen
	if earlier, ok := o.backedOff(seen); ok {
		return earlier
	}
	switch sent := o.deleted.UID != ""; {
	case sent && seen.Presence == observe.Absent && !older(seen.ResourceVersion, o.memo.ResourceVersion):
		return objectResult{dropped: true} // we deleted it, and its watch says it is gone
	case sent && seen.Presence == observe.Present && o.deleted.Precondition == preconditionOf(seen) && o.engine.Clock.Now().Before(o.deleted.until):
		// The watch has not come to the deletion yet.
		return o.refuse(seen, ReasonTerminating, false, "is being deleted")
	}
	result := o.takeAway(ctx, seen)
	if targetclient.IsOvertaken(result.err) {
		result = o.takeAway(ctx, Seen{Presence: observe.Unknown})
	}
	// A failure is kept until what was seen changes or its time has come, whatever was
	// read since.
	result.seen = seen
	result.dropped = result.err == nil && result.failure == nil
	return result
}

// takeAway does the work of removeOne for an object as it was seen, or reads it
// first.
func (o *object) takeAway(ctx context.Context, seen Seen) objectResult {
	if seen.Presence != observe.Present || seen.Late {
		// Absent may mean "without our label", unknown that the kind is gone. And
		// what the watch has not come to may be that somebody asked for the object
		// to be left, or controls it.
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

// takePresent is takeAway for an object that is there.
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
		// The watch need not have come to the end of the kind yet.
		return o.vanished(ctx, err)
	}
	result := o.refuse(seen, ReasonTerminating, false, "is being deleted")
	result.deleted = &precondition
	return result
}

func preconditionOf(seen Seen) targetclient.Precondition {
	return targetclient.Precondition{UID: seen.UID, ResourceVersion: seen.ResourceVersion}
}

// vanished judges an object that could not be read, or deleted: that its kind is served in no version
// does not say that it is gone, unless nothing defines the kind any more.
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

// leaves is true for an object that existed before the chain and is left for that.
func (o *object) leaves() bool { return o.memo.Adopted && !o.DeleteAdopted[o.revision] }

// left tells that an object is not ours to remove, and lets the inventory forget
// it. An intent that was never carried out is nothing to tell of.
func (o *object) left(owner string) objectResult {
	if o.memo.Intent() {
		return objectResult{}
	}
	event := o.event("Left", "left %s as it is: it %s", o.step.ID, owner)
	event.Warning = true
	return objectResult{events: []Event{event}}
}

// release leaves an object to the revision that wants it.
func (o *object) release(ctx context.Context, seen Seen) objectResult {
	marks := targetclient.Marks{
		FieldManager: o.who.Manager,
		Labels:       []string{o.engine.Names.ChainLabel},
		NewOwner:     o.NewOwners[o.memo.Revision],
	}
	if marks.NewOwner == nil {
		// A new owner may give the object back. A Deployment has another generation when an
		// annotation changes, so this one stays with the fields.
		marks.Annotations = []string{o.engine.Names.AppliedAnnotation}
	}
	err := o.engine.Writer.Release(ctx, o.step.Ref, preconditionOf(seen), marks)
	if err == nil || apierrors.IsNotFound(err) {
		return objectResult{}
	}
	return objectResult{err: err}
}

// leave reports the object, which has to go and cannot yet.
func (o *object) leave(reason string, needsPerson bool, message string) Failure {
	return Failure{Ref: o.step.Ref, Reason: reason, Message: message, NeedsPerson: needsPerson}
}
