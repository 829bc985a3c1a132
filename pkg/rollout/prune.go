package rollout

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// leaving is what is left of the objects that belong to no layer.
type leaving struct {
	// failures are the objects that still have to go, in the order in which they will.
	failures []Failure
	// acknowledge is what a person has to answer for more of them to go, see Report.
	acknowledge string
}

// prune applies the second half of the one rule: an object of the inventory that
// is in no layer goes, the highest rank first, and the next rank when that is
// gone (turns has the exception). While a layer is paused, or the cluster is frozen, nothing goes, and beyond the
// budget only what somebody deletes or acknowledges.
//
// An error means that the context ended, or that the inventory could not be saved; what
// was found until then is told all the same.
func (p *pass) prune(ctx context.Context) (leaving, error) {
	r := &removal{pass: p, guarded: map[manifest.ID]bool{}}
	err := r.run(ctx)
	return r.found, err
}

// removal is the state of one prune.
type removal struct {
	*pass
	found leaving
	// guarded are the CustomResourceDefinitions that were looked at for instances.
	guarded map[manifest.ID]bool
}

// run reads in three parts: what has to go, what of it may go, and the removal itself, turn
// by turn.
func (r *removal) run(ctx context.Context) error {
	leaving := r.unclaimed()
	if len(leaving) == 0 {
		return nil
	}
	if r.Freeze != nil {
		for _, id := range leaving {
			r.leave(id, ReasonFrozen, false, "would be deleted; "+r.Freeze.String())
		}
		return nil
	}
	for _, layer := range r.Layers {
		if layer.Paused {
			for _, id := range leaving {
				r.leave(id, ReasonPaused, false, fmt.Sprintf("would be deleted; revision %d is paused", layer.Revision))
			}
			return nil
		}
	}
	if r.isClaimed(ctx) {
		leaving = r.keepClaimed(leaving)
	}
	all, err := r.afford(ctx, leaving)
	if err != nil || len(all) == 0 {
		return err
	}
	turns := r.turns(all, leaving)
	if len(r.memory.deleted) == 0 {
		// Before anything goes, all of it is looked at: the controllers of the
		// instances should not go while there are some.
		free, err := r.guard(ctx, all, all)
		if err != nil {
			return err
		}
		if empty, err := r.holdFull(ctx, all, isClaim); err != nil || !free || !empty {
			return err
		}
	}
	for i, turn := range turns {
		next := turn.ids
		if i > 0 && turns[i-1].early && !turn.early {
			// The controller of the custom resources is still there: nothing of it is removed while
			// there are new ones.
			clear(r.guarded)
			next = all
		}
		// A user may have made an instance during the earlier turns.
		if free, err := r.guard(ctx, next, all); err != nil || !free {
			return err
		}
		// A namespace has generated objects as long as their controller runs.
		if empty, err := r.holdFull(ctx, turn.ids, func(id manifest.ID) bool { return isClaim(id) || isNamespace(id) }); err != nil || !empty {
			return err
		}
		gone, err := r.remove(ctx, turn.ids)
		if err != nil {
			return err
		}
		if !gone {
			r.postpone(turns[i+1:], turn.early)
			break
		}
	}
	return r.save(ctx)
}

// postpone reports the objects of later turns.
func (r *removal) postpone(turns []turn, early bool) {
	why := "waits for the objects that were rolled out after it to be gone"
	if early {
		why = "waits for the custom resources to be gone, whose controller may need it"
	}
	for _, turn := range turns {
		for _, id := range turn.ids {
			r.leave(id, ReasonWaiting, false, why)
		}
	}
}

// unclaimed lists the objects that are in no layer, the highest rank first. An
// object that a layer lists in a stage it has not reached is not among them. Nearly always
// every object has a place, and then no layer has to be looked through.
func (p *pass) unclaimed() []manifest.ID {
	for id := range p.inventory.Entries {
		if _, placed := p.places[id]; !placed {
			return p.inventory.Unlisted(p.Layers)
		}
	}
	return nil
}

// keepClaimed leaves out what would be deleted and a rival has. What is only released is
// given up to them all the same.
func (r *removal) keepClaimed(leaving []manifest.ID) []manifest.ID {
	var released []manifest.ID
	for _, id := range leaving {
		if r.Orphan[r.inventory.Entries[id].Revision] {
			released = append(released, id)
			continue
		}
		r.leave(id, r.claimed.reason, r.claimed.reason == ReasonContested, "would be deleted; "+r.claimed.why)
	}
	return released
}
