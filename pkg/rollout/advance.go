package rollout

import (
	"context"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// advance reaches the stages of the newest unpaused layer, one after the other. A stage is reached
// when all earlier stages are complete. An early stage needs only applied stages before it in its
// phase. Older layers do not advance, because this layer supersedes them. A paused layer does not
// stop the layer below it.
//
// It returns the objects that prevent the next phase from starting.
func (p *pass) advance(ctx context.Context) (refusals, error) {
	li := p.leading()
	if li < 0 || p.Freeze != nil {
		return nil, nil
	}
	layer := p.Layers[li]
	if refused, err := p.conform(ctx, li); err != nil || len(refused) > 0 {
		return refused, err
	}
	var closed *stage.Stage // the first stage whose gates are closed
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

// refusals are the failures of the objects that prevent their phase from starting.
type refusals map[manifest.ID]Failure

// leading returns the index of the layer that advances, or -1.
func (p *pass) leading() int {
	return slices.IndexFunc(p.Layers, func(layer Layer) bool { return !layer.Paused })
}

// reach starts a stage and reconciles it, unless preflight refuses an object.
func (p *pass) reach(ctx context.Context, at place) (stageResult, error) {
	if refused, err := p.preflight(ctx, at); err != nil || len(refused) > 0 {
		return stageResult{refused: refused}, err
	}
	p.ledger.reach(p.Layers[at.layer].Key, at.stage+1)
	p.claim(at)
	p.began(at)
	return p.reconcileReachedStage(ctx, at)
}

// complete reports whether all objects of a stage that belong to its layer are applied, and all its
// gates are open.
func (p *pass) complete(ctx context.Context, at place) bool {
	return p.applied(at) && p.open(ctx, at)
}

// applied reports whether all objects of a stage that belong to its layer are applied.
func (p *pass) applied(at place) bool {
	for _, step := range p.stage(at).Steps {
		if p.places[step.ID] == at && !p.outcomes[step.ID].applied {
			return false
		}
	}
	return true
}

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
