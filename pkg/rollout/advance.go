package rollout

import (
	"context"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// advance reaches the stages of the newest layer that is not paused, one after the
// other, while all that was reached is complete, or, where an early stage comes next,
// applied. Older layers hold what they have: that one is about to supersede them.
// Paused ones hold what they have, too; that somebody prepares the next revision does
// not stop this one's rollout.
//
// It returns why the phase that comes next could not be started, by object.
func (p *pass) advance(ctx context.Context) (refusals, error) {
	li := p.leading()
	if li < 0 || p.Freeze != nil {
		return nil, nil
	}
	layer := p.Layers[li]
	if refused, err := p.conform(ctx, li); err != nil || len(refused) > 0 {
		return refused, err
	}
	var closed *stage.Stage // the first whose gates are
	for si := range layer.Stages {
		at, stg := place{li, si}, &layer.Stages[si]
		if !p.isReached(at) {
			if closed != nil && (!stg.Early || closed.Phase != stg.Phase || closed.Level != stg.Level) {
				return nil, nil
			}
			if p.isClaimed(ctx) {
				return p.notBegun(at), nil
			}
			result, err := p.reach(ctx, at)
			p.note(result)
			if err != nil || len(result.refused) > 0 {
				return result.refused, err
			}
		}
		switch {
		case !p.applied(at):
			return nil, nil
		case closed != nil:
		case p.open(ctx, at):
			p.ended(at)
		default:
			closed = stg
		}
	}
	return nil, nil
}

// refusals are the failures of objects that keep their phase from being started.
type refusals map[manifest.ID]Failure

// leading is the index of the layer that advances, -1 for none.
func (p *pass) leading() int {
	return slices.IndexFunc(p.Layers, func(layer Layer) bool { return !layer.Paused })
}

// reach begins a stage and holds it, unless something refuses that.
func (p *pass) reach(ctx context.Context, at place) (stageResult, error) {
	if refused, err := p.preflight(ctx, at); err != nil || len(refused) > 0 {
		return stageResult{refused: refused}, err
	}
	p.ledger.reach(p.Layers[at.layer].Key, at.stage+1)
	p.claim(at)
	p.began(at)
	return p.reconcileReachedStage(ctx, at)
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
