package rollout

import (
	"context"
	"fmt"
	"slices"

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
// gone. While a layer is paused, or the cluster is frozen, nothing goes, and beyond the
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

// run reads in three parts: what has to go, what of it may go, and the removal itself, rank
// by rank.
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
	leaving = all
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
	for len(leaving) > 0 {
		rank := r.inventory.Entries[leaving[0]].Rank
		next := slices.IndexFunc(leaving, func(id manifest.ID) bool { return r.inventory.Entries[id].Rank != rank })
		if next < 0 {
			next = len(leaving)
		}
		// Someone may have made an instance while the ranks above went.
		if free, err := r.guard(ctx, leaving[:next], all); err != nil || !free {
			return err
		}
		// A namespace has things that are generated as long as there is who generates them.
		if empty, err := r.holdFull(ctx, leaving[:next], func(id manifest.ID) bool { return isClaim(id) || isNamespace(id) }); err != nil || !empty {
			return err
		}
		gone, err := r.remove(ctx, leaving[:next])
		if err != nil {
			return err
		}
		leaving = leaving[next:]
		if !gone {
			break
		}
	}
	for _, id := range leaving {
		r.leave(id, ReasonWaiting, false, "waits for the objects that were rolled out after it to be gone")
	}
	return r.save(ctx)
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
