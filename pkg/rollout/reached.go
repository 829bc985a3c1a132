package rollout

import (
	"context"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// reconcileReached keeps all reached stages of all layers as they should be. Every stage is
// looked at, whatever the state of the ones before it: only reaching a stage
// waits.
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

// stageResult is the result of a stage.
type stageResult struct {
	// objects that the pass worked on, of those that belong to the stage.
	objects []found
	// refused are the objects that keep the stage from being begun.
	refused refusals
}

// found is the result of one object.
type found struct {
	manifest.ID
	outcome
}

// note keeps what became of objects, for the stages that wait for them and for the report.
func (p *pass) note(result stageResult) {
	for _, object := range result.objects {
		p.outcomes[object.ID] = object.outcome
	}
}

// reconcileReachedStage makes the objects of a stage that belong to its layer as they should
// be, in any order, several at a time, and returns what became of each.
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
		// Before the cluster changes, what a crash must not make us forget is
		// stored: that the stage was reached, and which objects may exist soon.
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
	// Findings are stored with the next stage's intent, or behind the last stage: that is
	// the loss of a crash between a write and its record.
	return result, nil
}

// rests looks at an object of which nothing has to be done or written down, which
// is nearly all of them nearly always: an object for each would be most of what an
// idle pass costs. It is false when there is anything to do.
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

// intend notes the objects that are about to be made or taken over, and tells
// whether the cluster is about to be changed at all.
func (p *pass) intend(objects []*object) bool {
	writes := false
	for _, o := range objects {
		action := o.decide(o.seen).Action
		if !action.writes() {
			continue
		}
		writes = true
		// An update may become a create, because a watch may lag. Penstock never deletes an object
		// that is not in the inventory, and must never delete a create-only one.
		adopts := action == Adopt && !o.seen.Installed
		if action != Shared && !o.step.Policy.CreateOnly && (o.memo == nil || adopts && o.memo.Intent()) {
			o.memo = &Entry{Version: o.step.Version, Revision: o.revision, Rank: o.stage, Adopted: adopts}
			p.record(o.step.ID, *o.memo)
		}
	}
	return writes
}

// pause reports the objects of a layer that is paused, or frozen with all others, or that
// a competing owner has: what would be done, and is not.
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
				// Nothing tries to, which would tell whether another one has the name.
				p.hide(o.step.ID)
			}
			paused[i].outcome = o.refuse(Seen{}, reason, reason == ReasonContested, "differs from the manifest; "+why).outcome
		}
	}
	return paused
}
