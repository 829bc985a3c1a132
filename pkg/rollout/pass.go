package rollout

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// pass is the state of one Reconcile.
type pass struct {
	Work
	engine    *Engine
	who       Identity
	memory    *memory
	manifests Manifests

	// inventory is what we know, saved what is stored.
	inventory, saved Inventory
	// places says which layer and stage an object belongs to.
	places map[manifest.ID]place
	// outcomes of the objects that were looked at, by the layer they belong to.
	outcomes map[manifest.ID]outcome
	// refused are the failures of a phase that could not be started.
	refused map[manifest.ID]Failure

	// guarded are the CustomResourceDefinitions that were looked at in this pass.
	guarded map[manifest.ID]bool

	leaving     []Failure
	acknowledge string
	events      []Event
	requeue     time.Duration
}

// place is a stage of a layer, by index.
type place struct{ layer, stage int }

// outcome of one object in one pass.
type outcome struct {
	// applied is true when the object is as its manifest says.
	applied bool
	failure *Failure
}

// task is one object that a pass looks at.
type task struct {
	place
	step stage.Step
}

// watch tells the observer what this chain is about.
func (p *pass) watch() {
	scratch := p.engine.borrow()
	defer p.engine.giveBack(scratch)
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
		// Nobody's object has no label by which it could be watched.
		interest.ByName = p.memory.hidden[id] || createOnly[id] || shared[id]
		scratch.interests = append(scratch.interests, interest)
	}
	slices.SortFunc(scratch.interests, func(a, b observe.Interest) int { return compareIDs(a.ID, b.ID) })
	p.engine.Observer.Want(p.Owner, scratch.interests...)
}

// assign applies the first half of the one rule.
func (p *pass) assign() {
	for at := range p.reached() {
		p.claim(at)
	}
}

// stages of all layers, the newest layer first.
func (p *pass) stages() iter.Seq2[place, stage.Stage] {
	return func(yield func(place, stage.Stage) bool) {
		for li, layer := range p.Layers {
			for si, stg := range layer.Stages {
				if !yield(place{li, si}, stg) {
					return
				}
			}
		}
	}
}

// reached are the stages that their layer has reached.
func (p *pass) reached() iter.Seq[place] {
	return func(yield func(place) bool) {
		for at := range p.stages() {
			if p.isReached(at) && !yield(at) {
				return
			}
		}
	}
}

func (p *pass) isReached(at place) bool {
	return at.stage < p.inventory.Reached[p.Layers[at.layer].Key]
}

// claim gives the objects of a stage to its layer unless a newer one has them.
func (p *pass) claim(at place) {
	for _, step := range p.stage(at).Steps {
		if have, taken := p.places[step.ID]; !taken || have.layer > at.layer {
			p.places[step.ID] = at
		}
	}
}

func (p *pass) stage(at place) stage.Stage { return p.Layers[at.layer].Stages[at.stage] }

// hold keeps all reached stages of all layers as they should be. Every stage is
// looked at, whatever the state of the ones before it: only reaching a stage
// waits.
func (p *pass) hold(ctx context.Context) error {
	for at := range p.reached() {
		if err := p.holdStage(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// advance reaches the stages of the newest layer that is not paused, one after the
// other, while all that was reached is complete, or, where an early stage comes next,
// applied. Older layers hold what they have: that one is about to supersede them.
// Paused ones hold what they have, too; that somebody prepares the next revision does
// not stop this one's rollout.
func (p *pass) advance(ctx context.Context) error {
	li := slices.IndexFunc(p.Layers, func(layer Layer) bool { return !layer.Paused })
	if li < 0 || p.Freeze != nil {
		return nil
	}
	layer := p.Layers[li]
	if good, err := p.conform(ctx, li); err != nil || !good {
		return err
	}
	var closed *stage.Stage // the first whose gates are
	for si := range layer.Stages {
		at, stg := place{li, si}, &layer.Stages[si]
		if !p.isReached(at) {
			if closed != nil && (!stg.Early || closed.Phase != stg.Phase || closed.Level != stg.Level) {
				return nil
			}
			if reached, err := p.reach(ctx, at); err != nil || !reached {
				return err
			}
		}
		switch {
		case !p.applied(at):
			return nil
		case closed != nil:
		case p.open(ctx, at):
			p.ended(at)
		default:
			closed = stg
		}
	}
	return nil
}

// reach begins a stage, and tells whether that was possible.
func (p *pass) reach(ctx context.Context, at place) (bool, error) {
	if ready, err := p.preflight(ctx, at); err != nil || !ready {
		return false, err
	}
	p.inventory.Reached[p.Layers[at.layer].Key] = at.stage + 1
	p.claim(at)
	p.began(at)
	return true, p.holdStage(ctx, at)
}

// complete is true when all objects of a stage that belong to its layer are
// applied and all its gates are open.
func (p *pass) complete(ctx context.Context, at place) bool {
	return p.applied(at) && p.open(ctx, at)
}

// applied is true when all objects of a stage that belong to its layer are.
func (p *pass) applied(at place) bool {
	for _, step := range p.stage(at).Steps {
		if p.places[step.ID] == at && !p.outcomes[step.ID].applied {
			return false
		}
	}
	return true
}

// open is true when all gates of a stage are.
func (p *pass) open(ctx context.Context, at place) bool {
	for _, gate := range p.stage(at).Gates {
		if p.places[gate.ID] != at {
			continue
		}
		if verdict, _ := p.verdict(ctx, gate); verdict.Status != probe.True {
			return false
		}
	}
	return true
}

// shows is true when what a gate reads of an object is being watched.
func (p *pass) shows(gate stage.Gate) bool {
	seen, _ := p.engine.Observer.Get(gate.ID)
	return seen.Shows(p.engine.reading(gate))
}

// observed returns what is known of an object from its watch, or from the inventory
// where that knows better.
func (p *pass) observed(id manifest.ID) Seen {
	observation, presence := p.engine.Observer.Get(id)
	if found, ok := p.memory.found[id]; ok && presence == observe.Absent && !p.memory.hidden[id] {
		// It has not our label (yet), so no watch shows it.
		observation, presence = found, observe.Present
	}
	seen := Seen{Presence: presence, Observation: observation}
	if presence != observe.Present {
		return seen
	}
	memo := p.inventory.Entry(id)
	if predecessor(observation, memo) {
		// Of ours, which had not been made then, the watch knows nothing yet.
		seen.Presence = observe.Absent
		return seen
	}
	seen.Observation = newest(p.who, observation, memo)
	seen.Late = seen.ResourceVersion != observation.ResourceVersion
	seen.Stale = observation.Stale
	return seen
}

// tidy keeps the memory of attempts from growing with the revisions of a chain.
func (p *pass) tidy() {
	p.forgetVerdicts()
	maps.DeleteFunc(p.memory.judged, func(key string, _ conformity) bool {
		return !slices.ContainsFunc(p.Layers, func(layer Layer) bool { return layer.Key == key })
	})
	if p.memory.small() {
		return
	}
	wanted, known := map[manifest.Ref]bool{}, map[manifest.ID]bool{}
	createOnly := map[manifest.ID]bool{}
	for id := range p.inventory.Entries {
		wanted[p.inventory.Ref(id)], known[id] = true, true
	}
	for _, stg := range p.stages() {
		for _, step := range stg.Steps {
			wanted[step.Ref], known[step.ID] = true, true
			createOnly[step.ID] = createOnly[step.ID] || step.Policy.CreateOnly
		}
	}
	maps.DeleteFunc(p.memory.existing, func(id manifest.ID, _ string) bool { return !createOnly[id] })
	p.memory.keep(func(ref manifest.Ref) bool { return wanted[ref] }, func(id manifest.ID) bool { return known[id] })
}

// due asks for another pass at a time, at once when that has passed meanwhile: what was
// left alone because it was too early must not be forgotten.
func (p *pass) due(at time.Time) {
	p.again(max(at.Sub(p.engine.Clock.Now()), 1))
}

// again asks for another pass after d at the latest; 0 is for nothing to wait for.
func (p *pass) again(d time.Duration) {
	if d > 0 && (p.requeue == 0 || d < p.requeue) {
		p.requeue = d
	}
}
