package rollout

import (
	"cmp"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

func (p *pass) watch() {
	scratch := p.engine.borrow()
	defer p.engine.recycle(scratch)
	wanted := scratch.wanted
	createOnly := map[manifest.ID]bool{}
	var shared map[manifest.ID]bool
	for id, entry := range p.inventory.Entries {
		wanted[id] = observe.Interest{ID: id, Version: cmp.Or(p.memory.versions[id], entry.Version)}
	}
	// Oldest first: the newest layer's version of an API wins.
	for _, layer := range slices.Backward(p.Layers) {
		for _, stg := range layer.Stages {
			for _, step := range stg.Steps {
				interest := wanted[step.ID]
				interest.ID, interest.Version = step.ID, step.Version
				wanted[step.ID] = interest
				if step.Policy.CreateOnly {
					createOnly[step.ID] = true
				}
				if step.Policy.Own == stage.Shared {
					if shared == nil {
						shared = map[manifest.ID]bool{}
					}
					shared[step.ID] = true
				}
			}
			for _, gate := range stg.Gates {
				interest := wanted[gate.ID]
				interest.Reads = interest.Reads.Union(p.engine.reading(gate))
				wanted[gate.ID] = interest
			}
		}
	}
	for id, interest := range wanted {
		// Objects without the chain's label can only be watched by name.
		interest.ByName = p.memory.hidden[id] || createOnly[id] || shared[id]
		scratch.interests = append(scratch.interests, interest)
	}
	slices.SortFunc(scratch.interests, func(a, b observe.Interest) int { return a.ID.Compare(b.ID) })
	p.engine.Observer.Want(p.Owner, scratch.interests...)
}

// shows reports whether the watched object contains the parts that a gate reads.
func (p *pass) shows(gate stage.Gate) bool {
	seen, _ := p.engine.Observer.Get(gate.ID)
	return seen.Shows(p.engine.reading(gate))
}

// observed returns the state of an object from its watch. While the watch lags behind our last
// write, it uses the inventory. For an object without our label, it uses an earlier read.
func (p *pass) observed(id manifest.ID) Seen {
	observation, presence := p.engine.Observer.Get(id)
	if found, ok := p.memory.found[id]; ok && presence == observe.Absent && !p.memory.hidden[id] {
		// The object does not have our label (yet), so no watch shows it.
		observation, presence = found, observe.Present
	}
	seen := Seen{Presence: presence, Observation: observation}
	if presence != observe.Present {
		return seen
	}
	memo := p.inventory.Entry(id)
	if predecessor(observation, memo) {
		// The watch shows an earlier object of this name; it has not reported our object yet.
		seen.Presence = observe.Absent
		return seen
	}
	seen.Observation = newest(p.who, observation, memo)
	seen.Late = seen.ResourceVersion != observation.ResourceVersion
	seen.Stale = observation.Stale
	return seen
}
