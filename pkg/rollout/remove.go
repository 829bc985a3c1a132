package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// remove deletes objects of one rank and tells whether all of them are gone.
func (r *removal) remove(ctx context.Context, ids []manifest.ID) (bool, error) {
	tasks := make([]task, len(ids))
	for i, id := range ids {
		tasks[i].step.Ref = r.inventory.Ref(id)
	}
	results, err := r.carryOut(ctx, tasks, r.removeOne)
	if err != nil {
		return false, err
	}
	gone := true
	for i, id := range ids {
		result := results[i]
		if result.err != nil {
			result.failure = Classify(r.inventory.Ref(id), result.err)
		}
		if targetclient.IsOvertaken(result.err) {
			r.again(r.memory.lag(id, r.engine.Clock.Now(), r.engine.Jitter))
		}
		r.events = append(r.events, result.events...)
		if result.failure == nil {
			delete(r.inventory.Entries, id)
			r.memory.done(tasks[i].step.Ref)
			continue
		}
		gone = false
		if result.failure.Reason == ReasonTerminating {
			r.detains(ctx, result.failure)
		}
		if result.deleted != nil {
			r.memory.deleted[id] = deletion{*result.deleted, r.engine.Clock.Now().Add(lastRetry)}
		}
		if result.version != "" {
			r.memory.versions[id] = result.version
		}
		r.found.failures = append(r.found.failures, *result.failure)
		r.again(result.wait)
		r.schedule(tasks[i], result)
	}
	return gone, nil
}

// removeOne deletes or releases one object, and judges once more from a live read
// when it turns out to be another than was seen. No failure means that the
// inventory can forget it.
func (r *removal) removeOne(ctx context.Context, t task) taskResult {
	seen := r.observed(t.step.ID)
	if earlier, ok := r.backedOff(t, seen); ok {
		return earlier
	}
	switch deleted, sent := r.memory.deleted[t.step.ID]; {
	case sent && seen.Presence == observe.Absent && !older(seen.ResourceVersion, r.inventory.Entries[t.step.ID].ResourceVersion):
		return taskResult{} // we deleted it, and its watch says it is gone
	case sent && seen.Presence == observe.Present && deleted.Precondition == preconditionOf(seen) && r.engine.Clock.Now().Before(deleted.until):
		// The watch has not come to the deletion yet.
		return r.refuse(t, seen, ReasonTerminating, false, "is being deleted")
	}
	result := r.takeAway(ctx, t, seen)
	if targetclient.IsOvertaken(result.err) {
		result = r.takeAway(ctx, t, Seen{Presence: observe.Unknown})
	}
	// A failure is kept until what was seen changes or its time has come, whatever was
	// read since.
	result.seen = seen
	return result
}

// takeAway does the work of removeOne for an object as it was seen, or reads it
// first.
func (r *removal) takeAway(ctx context.Context, t task, seen Seen) taskResult {
	entry := r.inventory.Entries[t.step.ID]
	if seen.Presence != observe.Present || seen.Late {
		// Absent may mean "without our label", unknown that the kind is gone. And
		// what the watch has not come to may be that somebody asked for the object
		// to be left, or controls it.
		live, err := r.readLive(ctx, t.step.Ref)
		if err != nil {
			return r.vanished(ctx, t, err)
		}
		seen = live
	}
	if seen.Presence == observe.Absent {
		return taskResult{}
	}
	result := r.takePresent(ctx, t, entry, seen)
	if seen.Version != entry.Version {
		result.version = seen.Version
	}
	return result
}

// takePresent is takeAway for an object that is there.
func (r *removal) takePresent(ctx context.Context, t task, entry Entry, seen Seen) taskResult {
	if ours, owner := r.who.MayRemove(entry, seen.Observation); !ours {
		return r.left(t, entry, owner)
	}
	switch {
	case r.Orphan[entry.Revision] || seen.Keep:
		return r.release(ctx, t, seen)
	case r.leaves(entry):
		result := r.release(ctx, t, seen)
		if result.err == nil {
			result.events = append(result.events, Event{Revision: entry.Revision, Reason: "Left",
				Message: fmt.Sprintf("left %s as it is: it existed before the extension", t.step.ID)})
		}
		return result
	}
	if seen.Deleting {
		return r.terminating(t, seen)
	}
	if refusal, err := r.holdsOthers(ctx, t.step.ID, entry.Revision); err != nil {
		return taskResult{err: err}
	} else if refusal != "" {
		return r.refuse(t, seen, ReasonNotEmpty, true, refusal)
	}
	precondition := preconditionOf(seen)
	err := r.engine.Writer.Delete(ctx, t.step.Ref, precondition)
	switch {
	case apierrors.IsNotFound(err):
		return taskResult{}
	case err != nil:
		// The watch need not have come to the end of the kind yet.
		return r.vanished(ctx, t, err)
	}
	result := r.refuse(t, seen, ReasonTerminating, false, "is being deleted")
	result.deleted = &precondition
	return result
}

func preconditionOf(seen Seen) targetclient.Precondition {
	return targetclient.Precondition{UID: seen.UID, ResourceVersion: seen.ResourceVersion}
}

// vanished judges an object that could not be read, or deleted: that its kind is served in no version
// does not say that it is gone, unless nothing defines the kind any more.
func (r *removal) vanished(ctx context.Context, t task, err error) taskResult {
	if Classify(t.step.Ref, err).Reason != ReasonNotServed {
		return taskResult{err: err}
	}
	gone, err := r.undefined(ctx, t.step.GroupKind())
	switch {
	case err != nil:
		return taskResult{err: err}
	case gone:
		return taskResult{events: []Event{{
			Revision: r.inventory.Entries[t.step.ID].Revision, Reason: "Gone",
			Message: fmt.Sprintf("%s was deleted with the definition of its kind", t.step.ID),
		}}}
	}
	result := r.refuse(t, Seen{}, ReasonNotServed, false, "its kind is not served at the moment: it is not known whether the object exists")
	result.failure.Refused = true
	return result
}

// leaves is true for an object that existed before the chain and is left for that.
func (r *removal) leaves(entry Entry) bool {
	return entry.Adopted && !r.DeleteAdopted[entry.Revision]
}

// left tells that an object is not ours to remove, and lets the inventory forget
// it. An intent that was never carried out is nothing to tell of.
func (r *removal) left(t task, entry Entry, owner string) taskResult {
	if entry.Intent() {
		return taskResult{}
	}
	message := fmt.Sprintf("left %s as it is: it %s", t.step.ID, owner)
	return taskResult{events: []Event{{Revision: entry.Revision, Warning: true, Reason: "Left", Message: message}}}
}

// release leaves an object to whoever wants it.
func (p *pass) release(ctx context.Context, t task, seen Seen) taskResult {
	marks := targetclient.Marks{
		FieldManager: p.who.Manager,
		Labels:       []string{p.engine.Names.ChainLabel},
		Heir:         p.Heirs[p.inventory.Entries[t.step.ID].Revision],
	}
	if marks.Heir == nil {
		// An heir may give the object back. A Deployment has another generation when an
		// annotation changes, so this one stays with the fields.
		marks.Annotations = []string{p.engine.Names.AppliedAnnotation}
	}
	err := p.engine.Writer.Release(ctx, t.step.Ref, preconditionOf(seen), marks)
	if err == nil || apierrors.IsNotFound(err) {
		return taskResult{}
	}
	return taskResult{err: err}
}

// leave reports an object that has to go and cannot yet.
func (r *removal) leave(id manifest.ID, reason string, needsPerson bool, message string) {
	r.found.failures = append(r.found.failures, Failure{Ref: r.inventory.Ref(id), Reason: reason, Message: message, NeedsPerson: needsPerson})
}
