package rollout

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// pass is the state of one Reconcile.
type pass struct {
	*setting
	memory *memory

	ledger
	// places says which layer and stage an object belongs to.
	places map[manifest.ID]place
	// outcomes of the objects that were looked at, by the layer they belong to.
	outcomes map[manifest.ID]outcome
	// claimed is the answer of the competing owner.
	claimed claim

	// events report the actions of this pass so far; requeue is the time until
	// the next pass at the latest.
	events  []Event
	requeue time.Duration
}

// place is a stage of a layer, by index.
type place struct{ layer, stage int }

// passed has the findings of a pass, next to the results of the objects that layers want.
type passed struct {
	// refused are the failures of a phase that could not be started.
	refused refusals
	leaving
}

// run does the steps of a pass; the package comment says what each is for.
func (p *pass) run(ctx context.Context) (found passed, err error) {
	// 1. Watch what the layers and the inventory name.
	p.watch()
	// 2. Give every object to the newest layer that has reached its stage.
	p.assign()
	// 3. Keep what was reached as it should be, in every layer.
	if err := p.reconcileReached(ctx); err != nil {
		return found, err
	}
	// 4. Lead the newest layer on, stage by stage, as far as its gates let it.
	if found.refused, err = p.advance(ctx); err != nil {
		return found, err
	}
	// 5. Remove what belongs to no layer.
	if found.leaving, err = p.prune(ctx); err != nil {
		return found, err
	}
	// 6. Record what is known better than before.
	if err := p.save(ctx); err != nil {
		return found, err
	}
	// 7. Watch objects by name that turned out to be hidden from watches by label,
	// and forget what was tried for manifests that nobody wants any more.
	p.watch()
	p.tidy()
	return found, nil
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

// object is one that a layer wants, with what is known of it.
func (p *pass) object(at place, step stage.Step) *object {
	memo := p.inventory.Entry(step.ID)
	return &object{
		setting: p.setting, place: at, step: step, revision: p.Layers[at.layer].Revision, memo: memo, seen: p.observed(step.ID),
		remembered: p.memory.of(step.Ref), owned: step.Policy.CreateOnly && memo != nil && p.owns(step.ID), leftTo: p.makesRoom(step.ID, memo, at),
	}
}

// leaver is an object of the inventory that has to go.
func (p *pass) leaver(id manifest.ID) *object {
	memo := p.inventory.Entry(id)
	ref := memo.ref(id)
	return &object{setting: p.setting, place: place{layer: -1}, step: stage.Step{Ref: ref}, revision: memo.Revision, memo: memo, seen: p.observed(id), remembered: p.memory.of(ref)}
}

// carryOut does something with objects, some at a time. The error is the
// context's: the results of objects that were not begun then mean nothing.
func (p *pass) carryOut(ctx context.Context, objects []*object, do func(*object, context.Context) objectResult) ([]objectResult, error) {
	results := make([]objectResult, len(objects))
	var group errgroup.Group
	group.SetLimit(p.engine.Parallel)
	for i, o := range objects {
		group.Go(func() error {
			if ctx.Err() == nil {
				results[i] = do(o, ctx)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return nil: what fails is a result
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rolling out %s: %w", p.Owner, err)
	}
	return results, nil
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
