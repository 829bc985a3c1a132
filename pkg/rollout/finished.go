package rollout

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// A Job with spec.ttlSecondsAfterFinished removes itself when it has finished. It is done then,
// and is not run again: docs/adr/0044-finished-jobs.md.

// noteFinished records that a Job that removes itself has finished, as soon as its watch
// shows it: it may be gone before the next pass, or before the next process.
func (p *pass) noteFinished(ctx context.Context, step stage.Step, seen Seen) {
	entry := p.inventory.Entries[step.ID]
	outcome := observe.OutcomeOf(step.ID, seen.Object)
	if outcome == "" || entry.Finished == outcome || seen.Presence != observe.Present || seen.UID != entry.UID || entry.Digest != step.Digest {
		return
	}
	removesItself, known := p.memory.removing[step.Ref]
	if !known {
		removesItself = p.removesItself(ctx, step.Ref)
		p.memory.removing[step.Ref] = removesItself
	}
	if removesItself {
		entry.Finished = outcome
		p.inventory.Entries[step.ID] = entry
	}
}

// isDone is true for an absent Job that finished and removed itself, and says how it finished. A Job
// that was deleted before it had finished is not done. When nobody saw it go, it is done:
// that is what a Job that removes itself does, and to run it twice is worse than to ask a
// person who deleted it to make another one.
func (p *pass) isDone(ctx context.Context, t task, seen Seen) (observe.Outcome, bool) {
	memo := p.inventory.Entry(t.step.ID)
	if !observe.IsJob(t.step.ID) || t.step.Policy.CreateOnly || memo == nil || memo.Intent() || memo.Digest != t.step.Digest || !p.removesItself(ctx, t.step.Ref) {
		return "", false
	}
	outcome := observe.OutcomeUnknown
	if seen.End != nil && seen.End.UID == memo.UID {
		outcome = seen.End.Outcome
	}
	return outcome, outcome != ""
}

// removesItself is true for the manifest of a Job that is removed when it has finished.
func (p *pass) removesItself(ctx context.Context, ref manifest.Ref) bool {
	raw, err := p.Bodies.Body(ctx, ref)
	if err != nil {
		return false
	}
	job, err := decode(ref, raw)
	if err != nil {
		return false
	}
	spec, _ := job["spec"].(map[string]any)
	return spec["ttlSecondsAfterFinished"] != nil
}

// done notes that a Job that removed itself is as it should be; that costs no request.
func (p *pass) done(t task, outcome observe.Outcome) taskResult {
	entry := p.settled(p.inventory.Entries[t.step.ID], t.place, t.step)
	entry.Finished = outcome
	return taskResult{outcome: applied(), entry: &entry}
}

func applied() outcome { return outcome{applied: true} }

// verdictOfFinished judges a Job that removed itself.
func verdictOfFinished(how observe.Outcome) probe.Verdict {
	if how == observe.OutcomeFailed {
		return probe.Verdict{Status: probe.False, Message: "failed, and removed itself (ttlSecondsAfterFinished): it is not run again; a revision that changes the Job runs it"}
	}
	return probe.Verdict{Status: probe.True}
}

// tooSoon is a result for an object of ours that somebody deletes each time that it is created,
// while it is left alone.
func (p *pass) tooSoon(t task, seen Seen) (taskResult, bool) {
	memo := p.inventory.Entry(t.step.ID)
	if memo == nil || memo.Intent() || memo.Digest != t.step.Digest {
		return taskResult{}, false
	}
	wait := p.memory.patience(t.step.ID, p.engine.Clock.Now())
	if wait == 0 {
		return taskResult{}, false
	}
	result := p.refuse(t, seen, ReasonContested, false, fmt.Sprintf("is deleted again and again: it was created %d times; the next time comes later", p.memory.repairs[t.step.ID].count))
	result.wait = wait
	p.engine.Metrics.Contested(t.step.ID)
	return result, true
}
