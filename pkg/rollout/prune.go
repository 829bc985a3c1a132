package rollout

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// leaving has the remaining objects that belong to no layer.
type leaving struct {
	// failures are the objects that still have to go, in the order in which they will.
	failures []Failure
	// acknowledge is the answer that a user must give for more of them to be deleted, see Report.
	acknowledge string
}

// prune applies the second half of the one rule: an object of the inventory that
// is in no layer goes, the highest rank first, and the next rank when that is
// gone (turnsOf has the exception). While a layer is paused, or the cluster is frozen, nothing goes, and
// beyond the budget only what somebody deletes or acknowledges.
//
// An error means that the context ended, or that the inventory could not be saved; what
// was found until then is told all the same.
func (p *pass) prune(ctx context.Context) (leaving, error) {
	// 1. The objects that have to go.
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
	// 2. Those of them that may go.
	withinBudget, asked, err := p.chargeBudget(ctx, allowed)
	left.failures, left.acknowledge = append(left.failures, asked.failures...), asked.acknowledge
	if err != nil || len(withinBudget) == 0 {
		return left, err
	}
	// 3. The removal, turn by turn.
	kept, err := p.removeInTurns(ctx, withinBudget, allowed)
	left.failures = append(left.failures, kept...)
	return left, err
}

// suspended says why nothing is deleted now, empty when something may be.
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

// removeInTurns removes objects, and returns those that are still there. No turn begins before the one
// before it is gone, and none while a definition has instances, or an object takes others along.
func (p *pass) removeInTurns(ctx context.Context, objects, unclaimed []*object) ([]Failure, error) {
	guarded := map[manifest.ID]bool{}
	turns := turnsOf(objects, unclaimed)
	if len(p.memory.deleted) == 0 {
		// Before anything goes, all of it is looked at: the controllers of the
		// instances should not go while there are some.
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
			// The controller of the custom resources is still there: nothing of it is removed while
			// there are new ones.
			clear(guarded)
			next = objects
		}
		// A user may have made an instance during the earlier turns.
		if held, err := p.guard(ctx, next, objects, guarded); err != nil || len(held) > 0 {
			return held, err
		}
		// A namespace has generated objects as long as their controller runs.
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

// postponed are the objects of later turns.
func postponed(turns []turn, early bool) []Failure {
	why := "waits for the objects that were rolled out after it to be gone"
	if early {
		why = "waits for the custom resources to be gone, whose controller may need it"
	}
	var waiting []Failure
	for _, turn := range turns {
		waiting = append(waiting, leaveAll(turn.objects, ReasonWaiting, why)...)
	}
	return waiting
}

// leaveAll reports objects that have to go and cannot yet.
func leaveAll(objects []*object, reason, message string) []Failure {
	failures := make([]Failure, len(objects))
	for i, o := range objects {
		failures[i] = o.leave(reason, false, message)
	}
	return failures
}

// unclaimed lists the objects that are in no layer, the highest rank first. An
// object that a layer lists in a stage it has not reached is not among them. Nearly always
// every object has a place, and then no layer has to be looked through.
func (p *pass) unclaimed() []*object {
	for id := range p.inventory.Entries {
		if _, placed := p.places[id]; !placed {
			var objects []*object
			for _, id := range p.inventory.Unlisted(p.Layers) {
				objects = append(objects, p.leaver(id))
			}
			return objects
		}
	}
	return nil
}

// keepClaimed keeps what would be deleted and a competing owner has. Objects that are only released
// are given up to them all the same.
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
