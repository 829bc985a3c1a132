package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/host"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// prune applies the second half of the one rule: an object of the inventory that
// is in no layer goes, the highest rank first, and the next rank when that is
// gone. While a layer is paused nothing goes.
func (p *pass) prune(ctx context.Context) error {
	leaving := p.unclaimed()
	if len(leaving) == 0 {
		return nil
	}
	for _, layer := range p.Layers {
		if layer.Paused {
			for _, id := range leaving {
				p.leave(id, ReasonPaused, false, fmt.Sprintf("would be deleted; revision %d is paused", layer.Revision))
			}
			return nil
		}
	}
	if len(p.memory.deleted) == 0 {
		// Before anything goes, all of it is looked at: the controllers of the
		// instances should not go while there are some.
		if free, err := p.guard(ctx, leaving); err != nil || !free {
			return err
		}
	}
	for len(leaving) > 0 {
		rank := p.inventory.Entries[leaving[0]].Rank
		next := slices.IndexFunc(leaving, func(id manifest.ID) bool { return p.inventory.Entries[id].Rank != rank })
		if next < 0 {
			next = len(leaving)
		}
		// Someone may have made an instance while the ranks above went.
		if free, err := p.guard(ctx, leaving[:next]); err != nil || !free {
			return err
		}
		gone, err := p.remove(ctx, leaving[:next])
		if err != nil {
			return err
		}
		leaving = leaving[next:]
		if !gone {
			break
		}
	}
	for _, id := range leaving {
		p.leave(id, ReasonWaiting, false, "waits for the objects that were rolled out after it to be gone")
	}
	return p.save(ctx)
}

// unclaimed lists the objects that are in no layer, the highest rank first. An
// object that a layer lists in a stage it has not reached is not among them.
func (p *pass) unclaimed() []manifest.ID {
	listed := map[manifest.ID]bool{}
	for _, layer := range p.Layers {
		for _, stg := range layer.Stages {
			for _, step := range stg.Steps {
				listed[step.ID] = true
			}
		}
	}
	leaving := slices.DeleteFunc(sortedIDs(p.inventory.Entries), func(id manifest.ID) bool { return listed[id] })
	slices.SortStableFunc(leaving, func(a, b manifest.ID) int {
		return p.inventory.Entries[b].Rank - p.inventory.Entries[a].Rank
	})
	return leaving
}

// guard holds objects back while a CustomResourceDefinition among them still has
// instances which are not leaving with it: deleting it would delete them.
func (p *pass) guard(ctx context.Context, leaving []manifest.ID) (bool, error) {
	free := true
	for _, id := range leaving {
		entry := p.inventory.Entries[id]
		if !isCRD(id) || p.AllowCRDDeletion[id.Name] || p.Orphan[entry.Revision] {
			continue
		}
		if p.memory.deleted[id].UID != "" || p.guarded[id] {
			continue
		}
		p.guarded[id] = true
		instances, err := p.instances(ctx, id, entry)
		switch {
		case ctx.Err() != nil:
			return false, fmt.Errorf("looking for instances of %s: %w", id.Name, ctx.Err())
		case err != nil:
			p.leave(id, ReasonUnreachable, false, fmt.Sprintf("could not look for instances: %s", explain(p.ref(id), err)))
			free = false
		case len(instances) > 0:
			p.leave(id, ReasonCRDInstances, true, fmt.Sprintf(
				"still has instances (%s); deleting it would delete them: delete them, or acknowledge it", strings.Join(instances, ", ")))
			free = false
		}
	}
	if !free {
		p.again(p.engine.Jitter(settleFallback))
	}
	return free, nil
}

// instances names up to three instances of a CustomResourceDefinition that are not
// leaving themselves.
func (p *pass) instances(ctx context.Context, id manifest.ID, entry Entry) ([]string, error) {
	leaving := p.unclaimed()
	crd, err := p.engine.Reader.Read(ctx, p.ref(id))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if ours, _ := p.mayRemove(entry, p.engine.Names.Observe(crd)); !ours {
		return nil, nil // it will not be deleted
	}
	kind, served := servedKind(crd.Object)
	if !served {
		return nil, errors.New("none of its versions is served")
	}
	also := 0
	for _, other := range leaving {
		if other.GroupKind() == kind.GroupKind() {
			also++
		}
	}
	found, err := p.engine.Reader.Instances(ctx, kind, int64(also+3))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, instance := range found {
		other := manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: instance.Namespace, Name: instance.Name}
		if !slices.Contains(leaving, other) && len(names) < 3 {
			names = append(names, strings.TrimPrefix(instance.Namespace+"/"+instance.Name, "/"))
		}
	}
	return names, nil
}

// remove deletes objects of one rank and tells whether all of them are gone.
func (p *pass) remove(ctx context.Context, ids []manifest.ID) (bool, error) {
	tasks := make([]task, len(ids))
	for i, id := range ids {
		tasks[i].step.Ref = p.ref(id)
	}
	results, err := p.carryOut(ctx, tasks, p.removeOne)
	if err != nil {
		return false, err
	}
	gone := true
	for i, id := range ids {
		result := results[i]
		if result.err != nil {
			result.failure = classify(p.ref(id), result.err)
		}
		p.events = append(p.events, result.events...)
		if result.failure == nil {
			delete(p.inventory.Entries, id)
			p.memory.done(tasks[i].step.Ref)
			continue
		}
		gone = false
		if result.deleted != nil {
			p.memory.deleted[id] = *result.deleted
		}
		p.leaving = append(p.leaving, *result.failure)
		p.schedule(tasks[i], result)
	}
	return gone, nil
}

// removeOne deletes or releases one object, and judges once more from a live read
// when it turns out to be another than was seen. No failure means that the
// inventory can forget it.
func (p *pass) removeOne(ctx context.Context, t task) carried {
	seen := p.look(t.step.ID)
	if held, ok := p.held(t, seen); ok {
		return held
	}
	switch deleted, sent := p.memory.deleted[t.step.ID]; {
	case sent && seen.Presence == observe.Absent && !older(seen.ResourceVersion, p.inventory.Entries[t.step.ID].ResourceVersion):
		return carried{} // we deleted it, and its watch says it is gone
	case sent && seen.Presence == observe.Present && deleted == preconditionOf(seen):
		// The watch has not come to the deletion yet.
		return p.refuse(t, seen, ReasonTerminating, false, "is being deleted")
	}
	result := p.takeAway(ctx, t, seen)
	if surprised(result.err) {
		result = p.takeAway(ctx, t, Seen{Presence: observe.Unknown})
	}
	// A failure is held until what was seen changes, whatever was read since.
	result.seen = seen
	return result
}

// takeAway does the work of removeOne for an object as it was seen, or reads it
// first.
func (p *pass) takeAway(ctx context.Context, t task, seen Seen) carried {
	entry := p.inventory.Entries[t.step.ID]
	if seen.Presence != observe.Present {
		// Absent may mean "without our label", unknown that the kind is gone.
		live, err := p.readLive(ctx, t.step.Ref)
		if err != nil {
			return p.vanished(t, err)
		}
		seen = live
	}
	if seen.Presence == observe.Absent {
		return carried{}
	}
	if ours, owner := p.mayRemove(entry, seen.Observation); !ours {
		return p.left(t, entry, owner)
	}
	if p.Orphan[entry.Revision] {
		return p.release(ctx, t, seen)
	}
	if seen.Deleting {
		return p.refuse(t, seen, ReasonTerminating, false, "is being deleted; its finalizers have to be done first")
	}
	precondition := preconditionOf(seen)
	err := p.engine.Writer.Delete(ctx, t.step.Ref, precondition)
	switch {
	case apierrors.IsNotFound(err):
		return carried{}
	case err != nil:
		return carried{err: err}
	}
	result := p.refuse(t, seen, ReasonTerminating, false, "is being deleted")
	result.deleted = &precondition
	return result
}

func preconditionOf(seen Seen) host.Precondition {
	return host.Precondition{UID: seen.UID, ResourceVersion: seen.ResourceVersion}
}

// vanished judges an object that could not be read: that its kind is not served
// does not say that it is gone.
func (p *pass) vanished(t task, err error) carried {
	if classify(t.step.Ref, err).Reason == ReasonNotServed {
		return p.refuse(t, Seen{}, ReasonNotServed, false, "its kind is not served at the moment: whether it exists cannot be told")
	}
	return carried{err: err}
}

// mayRemove is true for the very object that we wrote, recorded or not, unless
// someone else has taken charge of it since.
func (p *pass) mayRemove(entry Entry, seen observe.Observation) (ours bool, owner string) {
	ours, owner = belongs(p.who, seen, &entry)
	if c := seen.Controller; ours && c != nil {
		return false, controlledBy(c)
	}
	return ours, owner
}

// left tells that an object is not ours to remove, and lets the inventory forget
// it. An intent that was never carried out is nothing to tell of.
func (p *pass) left(t task, entry Entry, owner string) carried {
	if entry.Intent() {
		return carried{}
	}
	message := fmt.Sprintf("left %s as it is: it %s", t.step.ID, owner)
	return carried{events: []Event{{Revision: entry.Revision, Warning: true, Reason: "Left", Message: message}}}
}

// release leaves an object to whoever wants it.
func (p *pass) release(ctx context.Context, t task, seen Seen) carried {
	err := p.engine.Writer.Release(ctx, t.step.Ref, preconditionOf(seen), host.Marks{
		FieldManager: p.who.Manager,
		Labels:       []string{p.engine.Names.ChainLabel},
		Annotations:  []string{p.engine.Names.AppliedAnnotation},
	})
	if err == nil || apierrors.IsNotFound(err) {
		return carried{}
	}
	return carried{err: err}
}

// ref is how an object of the inventory is addressed.
func (p *pass) ref(id manifest.ID) manifest.Ref {
	entry := p.inventory.Entries[id]
	return manifest.Ref{ID: id, Version: entry.Version, Digest: entry.Digest}
}

// leave reports an object that has to go and cannot yet.
func (p *pass) leave(id manifest.ID, reason string, needsPerson bool, message string) {
	p.leaving = append(p.leaving, Failure{Ref: p.ref(id), Reason: reason, Message: message, NeedsPerson: needsPerson})
}

// servedKind reads from a CustomResourceDefinition which kind it serves.
func servedKind(crd map[string]any) (manifest.Ref, bool) {
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	var ref manifest.Ref
	ref.Group, _ = spec["group"].(string)
	ref.Kind, _ = names["kind"].(string)
	for _, item := range versions {
		version, _ := item.(map[string]any)
		if served, _ := version["served"].(bool); served {
			ref.Version, _ = version["name"].(string)
		}
	}
	return ref, ref.Kind != "" && ref.Version != ""
}
