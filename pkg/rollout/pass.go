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
	// places are the layer and stage that each object belongs to.
	places map[manifest.ID]place
	// outcomes of the objects that were reconciled, by ID.
	outcomes map[manifest.ID]outcome
	// claimed is the answer of the competing owner.
	claimed claim

	// events report the actions of this pass; requeue is the longest time until the next pass.
	events  []Event
	requeue time.Duration
}

// place is a stage of a layer, by index.
type place struct{ layer, stage int }

// passed holds the findings of a pass besides the outcomes of the wanted objects.
type passed struct {
	// refused are the failures that prevent the next phase from starting.
	refused refusals
	leaving
}

// run does the steps of a pass, which the package comment describes.
func (p *pass) run(ctx context.Context) (found passed, err error) {
	// 1. Watch the objects of the layers and of the inventory.
	p.watch()
	// 2. Assign every object to the newest layer that has reached its stage.
	p.assign()
	// 3. Reconcile the reached stages of every layer.
	if err := p.reconcileReached(ctx); err != nil {
		return found, err
	}
	// 4. Advance the newest layer, stage by stage, as far as its gates allow.
	if found.refused, err = p.advance(ctx); err != nil {
		return found, err
	}
	// 5. Delete the objects that belong to no layer.
	if found.leaving, err = p.prune(ctx); err != nil {
		return found, err
	}
	// 6. Save the changes of the inventory.
	if err := p.save(ctx); err != nil {
		return found, err
	}
	// 7. Watch by name the objects that watches by label do not show, and drop the findings about
	// manifests that are not wanted any more.
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

// stages iterates over the stages of all layers, the newest layer first.
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

// reached iterates over the reached stages of all layers.
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

// claim assigns the objects of a stage to its layer unless a newer layer has them.
func (p *pass) claim(at place) {
	for _, step := range p.stage(at).Steps {
		if have, taken := p.places[step.ID]; !taken || have.layer > at.layer {
			p.places[step.ID] = at
		}
	}
}

func (p *pass) stage(at place) stage.Stage { return p.Layers[at.layer].Stages[at.stage] }

// object returns an object that a layer wants, with its known facts.
func (p *pass) object(at place, step stage.Step) *object {
	memo := p.inventory.Entry(step.ID)
	return &object{
		setting: p.setting, place: at, step: step, revision: p.Layers[at.layer].Revision, memo: memo, seen: p.observed(step.ID),
		remembered: p.memory.of(step.Ref), owned: step.Policy.CreateOnly && memo != nil && p.owns(step.ID), leftTo: p.makesRoom(step.ID, memo, at),
	}
}

// leavingObject returns an object of the inventory that is to be deleted.
func (p *pass) leavingObject(id manifest.ID) *object {
	memo := p.inventory.Entry(id)
	ref := memo.ref(id)
	return &object{setting: p.setting, place: place{layer: -1}, step: stage.Step{Ref: ref}, revision: memo.Revision, memo: memo, seen: p.observed(id), remembered: p.memory.of(ref)}
}

// carryOut calls do for the objects, several at a time. It fails only if the context ends; then the
// results are incomplete.
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
	_ = group.Wait() // the functions return nil: failures are in the results
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rolling out %s: %w", p.Owner, err)
	}
	return results, nil
}

// tidy drops findings that are not needed any more, so that the memory does not grow with the
// revisions of a chain.
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

// due requests another pass at a time; at once if the time has passed already.
func (p *pass) due(at time.Time) {
	p.again(max(at.Sub(p.engine.Clock.Now()), 1))
}

// again requests another pass after at most d; 0 requests none.
func (p *pass) again(d time.Duration) {
	if d > 0 && (p.requeue == 0 || d < p.requeue) {
		p.requeue = d
	}
}
