package rollout

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// A Job with spec.ttlSecondsAfterFinished is deleted after it has finished. The engine then counts
// it as done and does not run it again: docs/adr/0044-finished-jobs.md.

// noteFinished records the outcome of a Job that removes itself, as soon as the watch shows it: the
// Job may be deleted before the next pass, or while the process restarts.
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

// isDone reports whether an absent Job has finished and removed itself, and with which outcome. A
// Job that was deleted before it finished is not done. If its deletion was not observed, it counts
// as done: running a Job twice is worse than asking the user who deleted it to create another one.
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

// removesItself reports whether the manifest describes a Job that is deleted after it finishes.
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

// done records that a Job that removed itself is as desired; it costs no request.
func (o *object) done(outcome observe.Outcome) objectResult {
	entry := o.memo.settled(o.revision, o.stage, o.step.Version)
	entry.Finished = outcome
	return objectResult{outcome: applied(), entry: &entry}
}

func applied() outcome { return outcome{applied: true} }

func verdictOfFinished(how observe.Outcome) probe.Verdict {
	if how == observe.OutcomeFailed {
		return probe.Verdict{Status: probe.False, Message: "failed, and removed itself (ttlSecondsAfterFinished): it is not run again; a revision that changes the Job runs it"}
	}
	return probe.Verdict{Status: probe.True}
}

// tooSoon postpones the creation of an object of the chain that another writer deletes or changes
// after each repair.
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
