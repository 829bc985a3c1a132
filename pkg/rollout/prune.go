package rollout

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// leaving holds the remaining objects that belong to no layer.
type leaving struct {
	// failures are the objects that are still to be deleted, in the order of deletion.
	failures []Failure
	// acknowledge is the token that a user must acknowledge to allow more deletions (see Report).
	acknowledge string
}

// prune applies the second half of the one rule: it deletes the objects of the inventory that are
// in no layer. It deletes rank by rank, the highest first (turnsOf has the exception). It deletes
// nothing while a layer is paused or the cluster is frozen. Beyond the budget, it deletes only
// objects whose revision a user deletes, or whose deletion a user acknowledged.
//
// An error means that the context ended, or the inventory could not be saved. The findings until
// then are returned with it.
func (p *pass) prune(ctx context.Context) (leaving, error) {
	// 1. The objects that are to be deleted.
	objects := p.unclaimed()
	if len(objects) == 0 {
		return leaving{}, nil
	}
	if reason, why := p.suspended(); why != "" {
		return leaving{failures: leaveAll(objects, reason, "would be deleted; "+why)}, nil
	}
	var left leaving
	allowed := objects
	if p.isClaimed(ctx) {
		allowed, left.failures = p.keepClaimed(objects)
	}
	// 2. The objects that may be deleted now.
	withinBudget, asked, err := p.chargeBudget(ctx, allowed)
	left.failures, left.acknowledge = append(left.failures, asked.failures...), asked.acknowledge
	if err != nil || len(withinBudget) == 0 {
		return left, err
	}
	// 3. The deletion, turn by turn.
	kept, err := p.removeInTurns(ctx, withinBudget, allowed)
	left.failures = append(left.failures, kept...)
	return left, err
}

// suspended returns the reason why nothing is deleted now, or "".
func (p *pass) suspended() (reason, why string) {
	if p.Freeze != nil {
		return ReasonFrozen, p.Freeze.String()
	}
	for _, layer := range p.Layers {
		if layer.Paused {
			return ReasonPaused, fmt.Sprintf("revision %d is paused", layer.Revision)
		}
	}
	return "", ""
}

// removeInTurns deletes objects, and returns the objects that still exist. A turn begins when the
// previous turn is finished, no definition has instances, and no object would delete unacknowledged
// content.
func (p *pass) removeInTurns(ctx context.Context, objects, unclaimed []*object) ([]Failure, error) {
	guarded := map[manifest.ID]bool{}
	turns := turnsOf(objects, unclaimed)
	if len(p.memory.deleted) == 0 {
		// Before the first deletion, all definitions and claims are checked: the controllers of
		// instances must not be deleted while instances exist.
		held, err := p.guard(ctx, objects, objects, guarded)
		if err != nil {
			return held, err
		}
		full, err := p.holdNonEmpty(ctx, objects, isVolumeClaim)
		if held = append(held, full...); err != nil || len(held) > 0 {
			return held, err
		}
	}
	for i, turn := range turns {
		next := turn.objects
		if i > 0 && turns[i-1].early && !turn.early {
			// The controller of the custom resources still runs. It must not be deleted while there
			// are new instances.
			clear(guarded)
			next = objects
		}
		// A user may have created an instance during the earlier turns.
		if held, err := p.guard(ctx, next, objects, guarded); err != nil || len(held) > 0 {
			return held, err
		}
		// A namespace has generated objects as long as their controller runs, so it is checked in
		// its own turn.
		if full, err := p.holdNonEmpty(ctx, turn.objects, func(id manifest.ID) bool { return isVolumeClaim(id) || isNamespace(id) }); err != nil || len(full) > 0 {
			return full, err
		}
		left, err := p.remove(ctx, turn.objects)
		if err != nil || len(left) > 0 {
			return append(left, postponed(turns[i+1:], turn.early)...), err
		}
	}
	return nil, nil
}

func postponed(turns []turn, early bool) []Failure {
	why := "waits until the objects that were rolled out after it are deleted"
	if early {
		why = "waits until the custom resources are deleted, whose controller may need it"
	}
	var waiting []Failure
	for _, turn := range turns {
		waiting = append(waiting, leaveAll(turn.objects, ReasonWaiting, why)...)
	}
	return waiting
}

// leaveAll returns failures for objects that cannot be deleted yet.
func leaveAll(objects []*object, reason, message string) []Failure {
	failures := make([]Failure, len(objects))
	for i, o := range objects {
		failures[i] = o.leave(reason, false, message)
	}
	return failures
}

// unclaimed returns the objects that no layer lists in any stage, the highest rank first. Nearly
// always, every object has a place, and the layers need not be searched.
func (p *pass) unclaimed() []*object {
	for id := range p.inventory.Entries {
		if _, placed := p.places[id]; !placed {
			var objects []*object
			for _, id := range p.inventory.Unlisted(p.Layers) {
				objects = append(objects, p.leavingObject(id))
			}
			return objects
		}
	}
	return nil
}

// keepClaimed keeps the objects that would be deleted while a competing owner owns them. It returns
// separately the objects that are only released, which does not harm the other owner.
func (p *pass) keepClaimed(objects []*object) (released []*object, kept []Failure) {
	for _, o := range objects {
		if o.Orphan[o.revision] {
			released = append(released, o)
			continue
		}
		kept = append(kept, o.leave(p.claimed.reason, p.claimed.reason == ReasonContested, "would be deleted; "+p.claimed.why))
	}
	return released, kept
}
