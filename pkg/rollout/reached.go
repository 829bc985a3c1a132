package rollout

import (
	"context"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// hold keeps all reached stages of all layers as they should be. Every stage is
// looked at, whatever the state of the ones before it: only reaching a stage
// waits.
func (p *pass) hold(ctx context.Context) error {
	for at := range p.reached() {
		found, err := p.holdStage(ctx, at)
		p.note(found)
		if err != nil {
			return err
		}
	}
	return nil
}

// found is what became of one object.
type found struct {
	manifest.ID
	outcome
}

// note keeps what became of objects, for the stages that wait for them and for the report.
func (p *pass) note(objects []found) {
	for _, object := range objects {
		p.outcomes[object.ID] = object.outcome
	}
}

// holdStage makes the objects of a stage that belong to its layer as they should
// be, in any order, several at a time, and returns what became of each.
func (p *pass) holdStage(ctx context.Context, at place) ([]found, error) {
	steps := p.stage(at).Steps
	objects := make([]found, 0, len(steps))
	var tasks []task
	for _, step := range steps {
		switch {
		case p.places[step.ID] != at:
		case p.rests(at, step):
			p.memory.done(step.Ref)
			if observe.IsJob(step.ID) {
				p.noteFinished(ctx, step, p.observed(step.ID))
			}
			objects = append(objects, found{step.ID, outcome{applied: true}})
		default:
			tasks = append(tasks, task{place: at, step: step})
		}
	}
	if p.Layers[at.layer].Paused || p.Freeze != nil || p.Rival != nil && p.writes(tasks) && p.isClaimed(ctx) {
		return append(objects, p.pause(tasks)...), nil
	}
	if p.intend(tasks) {
		// Before the cluster changes, what a crash must not make us forget is
		// stored: that the stage was reached, and which objects may exist soon.
		if err := p.save(ctx); err != nil {
			return objects, err
		}
	}
	results, err := p.carryOut(ctx, tasks, p.execute)
	if err != nil {
		return objects, err
	}
	for i, t := range tasks {
		p.conclude(ctx, t, &results[i])
		objects = append(objects, found{t.step.ID, results[i].outcome})
	}
	// What was found is stored with what the next stage is about to do, or behind
	// the last one: that is the loss of a crash between a write and its record.
	return objects, nil
}

// rests looks at an object of which nothing has to be done or written down, which
// is nearly all of them nearly always: a task for each would be most of what an
// idle pass costs. It is false when there is anything to do.
func (p *pass) rests(at place, step stage.Step) bool {
	entry, known := p.inventory.Entries[step.ID]
	if p.Layers[at.layer].Paused || !known || !entry.equal(p.settled(entry, at, step)) {
		return false
	}
	if seen := p.observed(step.ID); seen.Stale || Decide(p.who, step, seen, &entry).Action != Idle {
		return false
	}
	return true
}

// intend notes the objects that are about to be made or taken over, and tells
// whether the cluster is about to be changed at all.
func (p *pass) intend(tasks []task) bool {
	writes := false
	for _, t := range tasks {
		seen := p.observed(t.step.ID)
		switch action := p.decide(t, seen).Action; action {
		case Create, Adopt, Update, Recover, Verify:
			// Also what is to be updated may have to be created in the end: a watch
			// may lag. What is not in the inventory is never deleted, and that is
			// what a create-only object must not be.
			memo := p.inventory.Entry(t.step.ID)
			adopts := action == Adopt && !seen.Installed
			if !t.step.Policy.CreateOnly && (memo == nil || adopts && memo.Intent()) {
				p.inventory.Entries[t.step.ID] = Entry{
					Version: t.step.Version, Revision: p.Layers[t.layer].Revision, Rank: t.stage, Adopted: adopts,
				}
			}
			writes = true
		case Shared:
			writes = true
		}
	}
	return writes
}

// pause reports the objects of a layer that is paused, or frozen with all others, or that
// a rival has: what would be done, and is not.
func (p *pass) pause(tasks []task) []found {
	reason, why := ReasonPaused, "the revision is paused"
	switch {
	case p.Freeze != nil:
		reason, why = ReasonFrozen, p.Freeze.String()
	case p.claimed.why != "":
		reason, why = p.claimed.reason, p.claimed.why
	}
	objects := make([]found, len(tasks))
	for i, t := range tasks {
		objects[i].ID = t.step.ID
		seen := p.observed(t.step.ID)
		decision := p.decide(t, seen)
		switch decision.Action {
		case Idle, Verify:
			failure := p.unreachable(t, seen)
			objects[i].outcome = outcome{applied: failure == nil, failure: failure}
		case Collision:
			objects[i].outcome = p.refuse(t, Seen{}, ReasonWaiting, false, decision.Message).outcome
		case Deferred:
			objects[i].outcome = p.deferred(t, decision, seen).outcome
		default:
			if decision.Action == Create {
				// Nothing tries to, which would tell whether another one has the name.
				p.hide(t.step.ID)
			}
			objects[i].outcome = p.refuse(t, Seen{}, reason, reason == ReasonContested, "differs from the manifest; "+why).outcome
		}
	}
	return objects
}
