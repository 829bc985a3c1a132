package rollout

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

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
	// protected is true when the object's namespace keeps it from us.
	protected bool
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

// refuse is a result without a write.
func (p *pass) refuse(t task, seen Seen, reason string, needsPerson bool, message string) taskResult {
	failure := &Failure{Ref: t.step.Ref, Reason: reason, Message: message, NeedsPerson: needsPerson}
	return taskResult{outcome: outcome{failure: failure}, seen: seen}
}

// terminating is a result about an object that is being deleted.
func (p *pass) terminating(t task, seen Seen) taskResult {
	result := p.refuse(t, seen, ReasonTerminating, false, Terminating(seen.Finalizers))
	result.failure.Held = len(seen.Finalizers) > 0
	return result
}

// event makes an event about a task.
func (p *pass) event(t task, reason, format string, args ...any) Event {
	return Event{Revision: p.Layers[t.layer].Revision, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
