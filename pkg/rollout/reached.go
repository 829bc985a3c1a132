package rollout

import (
	"context"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// reconcileReached reconciles all reached stages of all layers, whatever the state of earlier
// stages: only reaching a stage waits for them.
func (p *pass) reconcileReached(ctx context.Context) error {
	for at := range p.reached() {
		result, err := p.reconcileReachedStage(ctx, at)
		p.note(result)
		if err != nil {
			return err
		}
	}
	return nil
}

type stageResult struct {
	// objects of the stage that the pass reconciled.
	objects []found
	// refused are the objects that prevent the stage from starting.
	refused refusals
}

type found struct {
	manifest.ID
	outcome
}

// note records the outcomes, for later stages and for the report.
func (p *pass) note(result stageResult) {
	for _, object := range result.objects {
		p.outcomes[object.ID] = object.outcome
	}
}

// reconcileReachedStage reconciles the objects of a stage that belong to its layer, several at a
// time and in any order, and returns their outcomes.
func (p *pass) reconcileReachedStage(ctx context.Context, at place) (result stageResult, err error) {
	steps := p.stage(at).Steps
	result.objects = make([]found, 0, len(steps))
	var wanted []*object
	for _, step := range steps {
		switch {
		case p.places[step.ID] != at:
		case p.rests(at, step):
			p.memory.done(step.Ref)
			if observe.IsJob(step.ID) {
				p.noteFinished(ctx, step, p.observed(step.ID))
			}
			result.objects = append(result.objects, found{step.ID, outcome{applied: true}})
		default:
			wanted = append(wanted, p.object(at, step))
		}
	}
	if p.Layers[at.layer].Paused || p.Freeze != nil || p.CompetingOwner != nil && writes(wanted) && p.isClaimed(ctx) {
		result.objects = append(result.objects, p.pause(wanted)...)
		return result, nil
	}
	if p.intend(wanted) {
		// Before the first write, the facts that a crash must not lose are saved: the stage was
		// reached, and these objects may exist soon.
		if err := p.save(ctx); err != nil {
			return result, err
		}
	}
	results, err := p.carryOut(ctx, wanted, (*object).execute)
	if err != nil {
		return result, err
	}
	for i, o := range wanted {
		p.conclude(ctx, o, &results[i])
		result.objects = append(result.objects, found{o.step.ID, results[i].outcome})
	}
	// The results are saved with the next stage's intent, or after the last stage. A crash before
	// that loses them.
	return result, nil
}

// rests reports whether an object needs no action and no change of its inventory entry. This is
// nearly always true, and allocating an object for each would be most of the cost of an idle pass.
func (p *pass) rests(at place, step stage.Step) bool {
	entry, known := p.inventory.Entries[step.ID]
	if p.Layers[at.layer].Paused || !known || !entry.equal(entry.settled(p.Layers[at.layer].Revision, at.stage, step.Version)) {
		return false
	}
	if seen := p.observed(step.ID); seen.Stale || Decide(p.who, step, seen, &entry).Action != Idle {
		return false
	}
	return true
}

// intend records an intent for the objects that are about to be created or adopted. It returns true
// if any object is about to be written.
func (p *pass) intend(objects []*object) bool {
	writes := false
	for _, o := range objects {
		action := o.decide(o.seen).Action
		if !action.writes() {
			continue
		}
		writes = true
		// An update may become a create, because a watch may lag. Penstock never deletes an object
		// that is not in the inventory, and must never delete a create-only object.
		adopts := action == Adopt && !o.seen.Installed
		if action != Shared && !o.step.Policy.CreateOnly && (o.memo == nil || adopts && o.memo.Intent()) {
			o.memo = &Entry{Version: o.step.Version, Revision: o.revision, Rank: o.stage, Adopted: adopts}
			p.record(o.step.ID, *o.memo)
		}
	}
	return writes
}

// pause reports the pending actions for the objects of a layer that is paused, frozen, or owned by
// a competing owner.
func (p *pass) pause(objects []*object) []found {
	reason, why := ReasonPaused, "the revision is paused"
	switch {
	case p.Freeze != nil:
		reason, why = ReasonFrozen, p.Freeze.String()
	case p.claimed.why != "":
		reason, why = p.claimed.reason, p.claimed.why
	}
	paused := make([]found, len(objects))
	for i, o := range objects {
		paused[i].ID = o.step.ID
		decision := o.decide(o.seen)
		switch decision.Action {
		case Idle, Verify:
			failure := o.unreachable(o.seen)
			paused[i].outcome = outcome{applied: failure == nil, failure: failure}
		case Collision:
			paused[i].outcome = o.refuse(Seen{}, ReasonWaiting, false, decision.Message).outcome
		case Deferred:
			paused[i].outcome = o.deferred(decision, o.seen).outcome
		default:
			if decision.Action == Create {
				// No write will reveal that an object without the chain's label has the name, so it
				// is watched by name.
				p.hide(o.step.ID)
			}
			paused[i].outcome = o.refuse(Seen{}, reason, reason == ReasonContested, "differs from the manifest; "+why).outcome
		}
	}
	return paused
}
