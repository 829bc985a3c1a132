package rollout

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// prune applies the second half of the one rule: an object of the inventory that
// is in no layer goes, the highest rank first, and the next rank when that is
// gone. While a layer is paused, or the cluster is frozen, nothing goes, and beyond the
// budget only what somebody deletes or acknowledges.
func (p *pass) prune(ctx context.Context) error {
	leaving := p.unclaimed()
	if len(leaving) == 0 {
		return nil
	}
	if p.Freeze != nil {
		for _, id := range leaving {
			p.leave(id, ReasonFrozen, false, "would be deleted; "+p.Freeze.String())
		}
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
	all, err := p.afford(ctx, leaving)
	if err != nil || len(all) == 0 {
		return err
	}
	leaving = all
	if len(p.memory.deleted) == 0 {
		// Before anything goes, all of it is looked at: the controllers of the
		// instances should not go while there are some.
		if free, err := p.guard(ctx, all, all); err != nil || !free {
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
		if free, err := p.guard(ctx, leaving[:next], all); err != nil || !free {
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
