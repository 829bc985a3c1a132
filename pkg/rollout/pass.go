package rollout

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
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

	// events tell what was done so far, and requeue is when to come again at the latest.
	events  []Event
	requeue time.Duration
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

// run does the steps of a pass; the package comment says what each is for.
func (p *pass) run(ctx context.Context) (leaving, error) {
	// 1. Watch what the layers and the inventory name.
	p.watch()
	// 2. Give every object to the newest layer that has reached its stage.
	p.assign()
	// 3. Keep what was reached as it should be, in every layer.
	if err := p.hold(ctx); err != nil {
		return leaving{}, err
	}
	// 4. Lead the newest layer on, stage by stage, as far as its gates let it.
	if err := p.advance(ctx); err != nil {
		return leaving{}, err
	}
	// 5. Remove what belongs to no layer.
	left, err := p.prune(ctx)
	if err != nil {
		return left, err
	}
	// 6. Record what is known better than before.
	if err := p.save(ctx); err != nil {
		return left, err
	}
	// 7. Watch objects by name that turned out to be hidden from watches by label,
	// and forget what was tried for manifests that nobody wants any more.
	p.watch()
	p.tidy()
	return left, nil
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

// save stores the inventory when it differs from what is stored.
func (p *pass) save(ctx context.Context) error {
	if p.inventory.equal(p.saved) {
		return nil
	}
	snapshot := p.inventory.clone()
	if err := p.Save(ctx, snapshot); err != nil {
		return fmt.Errorf("saving the inventory of %s: %w", p.Owner, err)
	}
	p.saved = snapshot
	return nil
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
