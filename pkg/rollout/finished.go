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
		p.record(step.ID, entry)
	}
}

// isDone is true for an absent Job that finished and removed itself, and says how it finished. A Job
// that was deleted before it had finished is not done. When nobody saw it go, it is done:
// that is what a Job that removes itself does, and to run it twice is worse than to ask a
// person who deleted it to make another one.
func (o *object) isDone(ctx context.Context, seen Seen) (observe.Outcome, bool) {
	memo := o.memo
	if !observe.IsJob(o.step.ID) || o.step.Policy.CreateOnly || memo == nil || memo.Intent() || memo.Digest != o.step.Digest || !o.removesItself(ctx, o.step.Ref) {
		return "", false
	}
	outcome := observe.OutcomeUnknown
	if seen.End != nil && seen.End.UID == memo.UID {
		outcome = seen.End.Outcome
	}
	return outcome, outcome != ""
}

// removesItself is true for the manifest of a Job that is removed when it has finished.
func (s *setting) removesItself(ctx context.Context, ref manifest.Ref) bool {
	raw, err := s.Bodies.Body(ctx, ref)
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
func (o *object) done(outcome observe.Outcome) objectResult {
	entry := o.memo.settled(o.revision, o.stage, o.step.Version)
	entry.Finished = outcome
	return objectResult{outcome: applied(), entry: &entry}
}

func applied() outcome { return outcome{applied: true} }

// verdictOfFinished judges a Job that removed itself.
func verdictOfFinished(how observe.Outcome) probe.Verdict {
	if how == observe.OutcomeFailed {
		return probe.Verdict{Status: probe.False, Message: "failed, and removed itself (ttlSecondsAfterFinished): it is not run again; a revision that changes the Job runs it"}
	}
	return probe.Verdict{Status: probe.True}
}

// tooSoon is a result for an object of ours that somebody deletes or changes each time that it is put right,
// while it is left alone.
func (o *object) tooSoon(seen Seen) (objectResult, bool) {
	memo := o.memo
	if memo == nil || memo.Intent() || memo.Digest != o.step.Digest {
		return objectResult{}, false
	}
	wait := o.repairs.patience(o.engine.Clock.Now())
	if wait == 0 {
		return objectResult{}, false
	}
	result := o.refuse(seen, ReasonContested, false, fmt.Sprintf("is changed or deleted again and again: it was put right %d times; the next time comes later", o.repairs.count))
	result.wait = wait
	o.engine.Metrics.Contested(o.step.ID)
	return result, true
}
