package rollout

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// holdStage makes the objects of a stage that belong to its layer as they should
// be, in any order, several at a time.
func (p *pass) holdStage(ctx context.Context, at place) error {
	var tasks []task
	for _, step := range p.stage(at).Steps {
		if p.places[step.ID] == at && !p.rests(at, step) {
			tasks = append(tasks, task{place: at, step: step})
		}
	}
	if p.Layers[at.layer].Paused || p.Freeze != nil {
		p.pause(tasks)
		return nil
	}
	if p.intend(tasks) {
		// Before the cluster changes, what a crash must not make us forget is
		// stored: that the stage was reached, and which objects may exist soon.
		if err := p.save(ctx); err != nil {
			return err
		}
	}
	results, err := p.carryOut(ctx, tasks, p.execute)
	if err != nil {
		return err
	}
	for i, t := range tasks {
		p.conclude(t, &results[i])
		p.outcomes[t.step.ID] = results[i].outcome
	}
	// What was found is stored with what the next stage is about to do, or behind
	// the last one: that is the loss of a crash between a write and its record.
	return nil
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
	p.outcomes[step.ID] = outcome{applied: true}
	p.memory.done(step.Ref)
	return true
}

// decide applies the table to one object.
func (p *pass) decide(t task, seen Seen) Decision {
	return Decide(p.who, t.step, seen, p.inventory.Entry(t.step.ID))
}

// intend notes the objects that are about to be made or taken over, and tells
// whether the cluster is about to be changed at all.
func (p *pass) intend(tasks []task) bool {
	writes := false
	for _, t := range tasks {
		switch p.decide(t, p.observed(t.step.ID)).Action {
		case Create, Adopt, Update, Recover, Verify:
			// Also what is to be updated may have to be created in the end: a watch
			// may lag. What is not in the inventory is never deleted, and that is
			// what a create-only object must not be.
			if _, known := p.inventory.Entries[t.step.ID]; !known && !t.step.Policy.CreateOnly {
				p.inventory.Entries[t.step.ID] = Entry{
					Version: t.step.Version, Revision: p.Layers[t.layer].Revision, Rank: t.stage,
				}
			}
			writes = true
		case Shared:
			writes = true
		}
	}
	return writes
}

// taskResult is what became of one task. Tasks run side by side and share nothing;
// conclude merges what they found, one after the other.
type taskResult struct {
	outcome
	// entry is set when the inventory knows more than before.
	entry  *Entry
	events []Event
	// seen is the object as it was judged last.
	seen Seen
	// hidden is true when the object exists but no watch by label shows it.
	hidden bool
	// found is an object that no watch shows and that is to be written; reread is
	// true when that, or that there is none, is known from a read.
	found  *observe.Observation
	reread bool
	// passed is the check that need not be repeated.
	passed *attempt
	// backedOff is true when nothing was tried because it is too early; wait is how
	// long that will be so for an object that is being fought over.
	backedOff bool
	wait      time.Duration
	// deleted is the object that a delete of ours was accepted for.
	deleted *targetclient.Precondition
	// version that the object was found in when the recorded one is not served.
	version string
	// watching is true when the watch, which tries again by itself, will tell.
	watching bool
	// existing is the version of a create-only object that is there, and
	// forgotten is true when it was ours and is not any more.
	existing string
	disowned bool
	// looked is true when a changed object was read, and perhaps repaired.
	looked bool
	// lost says what someone else had changed when the object was read.
	lost string
	err  error
}

// carryOut runs a function over tasks, some at a time. The error is the
// context's: the results of tasks that were not started then mean nothing.
func (p *pass) carryOut(ctx context.Context, tasks []task, do func(context.Context, task) taskResult) ([]taskResult, error) {
	results := make([]taskResult, len(tasks))
	var group errgroup.Group
	group.SetLimit(p.engine.Parallel)
	for i, t := range tasks {
		group.Go(func() error {
			if ctx.Err() == nil {
				results[i] = do(ctx, t)
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

// execute does what has to be done with an object, and decides once more from a
// live read when the object turns out to be another than was seen.
func (p *pass) execute(ctx context.Context, t task) taskResult {
	if t.step.Policy.CreateOnly {
		return p.ensureExists(ctx, t)
	}
	seen := p.observed(t.step.ID)
	decision := p.decide(t, seen)
	if decision.Action == Idle {
		if failure := p.unreachable(t, seen); failure != nil {
			return taskResult{outcome: outcome{failure: failure}, seen: seen, watching: true}
		}
		return p.idle(t)
	}
	if next, waits := p.makesRoom(t); decision.Action == Create && waits {
		return p.refuse(t, seen, ReasonWaiting, false, fmt.Sprintf("was deleted, so that revision %d can make it anew", next))
	}
	if earlier, ok := p.backedOff(t, seen); ok {
		return earlier
	}
	result := p.act(ctx, t, decision, seen)
	if !targetclient.IsOvertaken(result.err) {
		return result
	}
	live, err := p.readLive(ctx, t.step.Ref)
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	result = p.act(ctx, t, p.decide(t, live), live)
	result.reread = true
	result.hidden = decision.Action == Create && live.Presence == observe.Present
	return result
}

// idle notes which layer the object belongs to by now; that costs no request.
func (p *pass) idle(t task) taskResult {
	entry := p.settled(p.inventory.Entries[t.step.ID], t.place, t.step)
	return taskResult{outcome: outcome{applied: true}, entry: &entry}
}

// settled is the entry of an object of which nothing has to be done: as it was, but
// where the object belongs now, and it is not to go.
func (p *pass) settled(entry Entry, at place, step stage.Step) Entry {
	entry.Revision, entry.Rank, entry.Version, entry.Doomed = p.Layers[at.layer].Revision, at.stage, step.Version, false
	return entry
}

// backedOff returns the last failure again while it is too early for another try of
// the same write.
func (p *pass) backedOff(t task, seen Seen) (taskResult, bool) {
	now := p.engine.Clock.Now()
	if late := p.memory.overtaken[t.step.ID]; now.Before(late.until) {
		result := p.refuse(t, seen, ReasonWaiting, false, fmt.Sprintf(
			"others wrote to it between each read and write of %d passes; the next try waits", late.count))
		result.backedOff, result.wait = true, late.until.Sub(now)
		return result, true
	}
	last, failed := p.memory.failed[t.step.Ref]
	if !failed || last.attempt != attemptOf(t, seen) || !now.Before(last.until) {
		return taskResult{}, false
	}
	return taskResult{outcome: outcome{failure: &last.failure}, seen: seen, backedOff: true}, true
}

// attemptOf tells apart what a manifest may be written onto, and, of a shared object, in
// which state it may. How far the watch of an absent object has come means nothing.
func attemptOf(t task, seen Seen) attempt {
	what := attempt{presence: seen.Presence}
	if t.step.Policy.Own == stage.Shared {
		what.policy = fmt.Sprintf("%+v", t.step.Policy)
	}
	if seen.Presence == observe.Present {
		what.resourceVersion = seen.ResourceVersion
	}
	return what
}

// act does one decision.
func (p *pass) act(ctx context.Context, t task, decision Decision, seen Seen) taskResult {
	switch decision.Action {
	case Create:
		return p.apply(ctx, t, seen, targetclient.ApplyOptions{CreateOnly: true}, nil, p.created(t)...)
	case Adopt:
		return p.adopt(ctx, t, seen)
	case Update:
		return p.update(ctx, t, seen)
	case Recover, Verify:
		return p.repair(ctx, t, decision.Action, seen)
	case Idle:
		return p.idle(t)
	case Shared:
		return p.shared(ctx, t, seen)
	case Collision:
		return p.refuse(t, seen, ReasonCollision, true, decision.Message)
	default:
		return p.deferred(t, decision, seen)
	}
}

// deferred says what an object waits for.
func (p *pass) deferred(t task, decision Decision, seen Seen) taskResult {
	switch {
	case seen.Presence == observe.Present && seen.Deleting:
		return p.refuse(t, seen, ReasonTerminating, false, decision.Message)
	case seen.Presence == observe.Unknown:
		return taskResult{outcome: outcome{failure: p.unknown(t, decision.Message)}, seen: seen, watching: true}
	}
	return p.refuse(t, seen, ReasonWaiting, false, decision.Message)
}

// unknown says why nothing is known of an object.
func (p *pass) unknown(t task, message string) *Failure {
	failure := &Failure{Ref: t.step.Ref, Reason: ReasonWaiting, Message: message, Unknown: true}
	trouble := p.engine.trouble(t.step.ID)
	if trouble == nil {
		return failure // the answer is on its way
	}
	why := Classify(t.step.Ref, trouble)
	failure.Message, failure.NeedsPerson, failure.Refused = why.Message, why.NeedsPerson, why.Refused
	switch why.Reason {
	case ReasonUnreachable:
		failure.Reason = ReasonUnreachable
	case ReasonNotServed:
		// What nobody serves is not there for anybody.
		failure.Reason, failure.Unknown = ReasonNotServed, false
	default:
		failure.Reason = ReasonUnwatched
	}
	return failure
}

// unreachable says why an object that was as it should be may not be so any more: the
// cluster does not answer. It is neither wrong nor lost then, and nothing is done.
func (p *pass) unreachable(t task, seen Seen) *Failure {
	if !seen.Stale {
		return nil
	}
	if failure := p.unknown(t, "its watch does not answer"); failure.Reason == ReasonUnreachable {
		return failure
	}
	return nil
}

// refuse is a result without a write.
func (p *pass) refuse(t task, seen Seen, reason string, needsPerson bool, message string) taskResult {
	failure := &Failure{Ref: t.step.Ref, Reason: reason, Message: message, NeedsPerson: needsPerson}
	return taskResult{outcome: outcome{failure: failure}, seen: seen}
}

// created tells of an object that was there before and had to be made again.
func (p *pass) created(t task) []Event {
	if memo := p.inventory.Entry(t.step.ID); memo == nil || memo.Intent() {
		return nil
	}
	return []Event{p.event(t, "Recreated", "created %s again, which someone had deleted", t.step.ID)}
}

// onto is the precondition of a write onto what was seen.
func onto(seen Seen) targetclient.ApplyOptions {
	return targetclient.ApplyOptions{UID: seen.UID, ResourceVersion: seen.ResourceVersion}
}

// apply writes the object's manifest without the fields that are left to others.
func (p *pass) apply(ctx context.Context, t task, seen Seen, options targetclient.ApplyOptions, yielded []string, events ...Event) taskResult {
	body, err := p.manifests.Without(ctx, t.step, yielded)
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	live, corrected, err := p.write(ctx, t, t.step.Ref, body, options)
	if err != nil {
		return taskResult{seen: seen, err: err, events: corrected}
	}
	entry := entryOf(p.who, t.step, p.Layers[t.layer], t.stage, p.engine.Names.Observe(live), yielded)
	return taskResult{outcome: outcome{applied: true}, entry: &entry, seen: seen, events: append(corrected, events...)}
}

// readLive reads an object past the watches.
func (p *pass) readLive(ctx context.Context, ref manifest.Ref) (Seen, error) {
	live, err := p.engine.Reader.ReadMetadata(ctx, ref)
	if apierrors.IsNotFound(err) {
		return Seen{Presence: observe.Absent}, nil
	}
	if err != nil {
		return Seen{}, err
	}
	return p.seen(live), nil
}

// event makes an event about a task.
func (p *pass) event(t task, reason, format string, args ...any) Event {
	return Event{Revision: p.Layers[t.layer].Revision, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
