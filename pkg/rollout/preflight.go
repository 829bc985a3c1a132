package rollout

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// preflight tries by dry-run what reaching a stage would write, for the whole rest
// of its phase: no write of a phase starts while one of its objects would be
// refused or collide. A check that passed is not repeated for settledFor while the object
// and its manifest stay the same.
//
// An installation by levels has no such check: there one object that is refused
// does not keep its siblings from being written, as there is nothing yet that a
// half-written phase could break.
func (p *pass) preflight(ctx context.Context, at place) (refusals, error) {
	if p.Layers[at.layer].Levels {
		return nil, nil
	}
	phase := p.stage(at).Phase
	var tasks []task
	for si, stg := range p.Layers[at.layer].Stages[at.stage:] {
		if stg.Phase != phase {
			break
		}
		for _, step := range stg.Steps {
			tasks = append(tasks, task{place: place{at.layer, at.stage + si}, step: step})
		}
	}
	results, err := p.carryOut(ctx, tasks, func(ctx context.Context, t task) taskResult {
		return p.check(ctx, t, p.tolerance(tasks, t, at))
	})
	if err != nil {
		return nil, err
	}
	refused := refusals{}
	for i, t := range tasks {
		p.conclude(ctx, t, &results[i])
		if results[i].passed != nil {
			p.memory.passed[t.step.Ref] = check{*results[i].passed, p.engine.Clock.Now().Add(settledFor)}
		}
		if failure := results[i].failure; failure != nil {
			refused[t.step.ID] = *failure
		}
	}
	for _, t := range tasks {
		// One that is over is not asked again while there is another refusal.
		if until := p.memory.passed[t.step.Ref].until; len(refused) > 0 && p.engine.Clock.Now().Before(until) {
			p.due(until)
		}
	}
	return refused, nil
}

// check tries one object, and once more from a live read when it turns out to be
// another than was seen.
func (p *pass) check(ctx context.Context, t task, tolerated tolerance) taskResult {
	seen := p.observed(t.step.ID)
	if earlier, ok := p.backedOff(t, seen); ok {
		return earlier
	}
	decision := p.decide(t, seen)
	result := p.dryRun(ctx, t, decision, seen, tolerated)
	if !targetclient.IsOvertaken(result.err) {
		return result
	}
	live, err := p.readLive(ctx, t.step.Ref)
	if err != nil {
		return taskResult{seen: seen, err: err}
	}
	again := p.decide(t, live)
	result = p.dryRun(ctx, t, again, live, tolerated)
	result.reread = true
	if again.Action == Adopt || again.Action == Update || again.Action == Recover {
		result.found = &live.Observation
	}
	result.hidden = decision.Action == Create && live.Presence == observe.Present
	return result
}

// dryRun asks the server what it would say to a decision. A result without
// failure means that the stage may be reached as far as this object goes.
func (p *pass) dryRun(ctx context.Context, t task, decision Decision, seen Seen, tolerated tolerance) taskResult {
	var options targetclient.ApplyOptions
	switch decision.Action {
	case Create:
		if _, done := p.isDone(ctx, t, seen); done {
			return taskResult{seen: seen}
		}
		options = targetclient.ApplyOptions{CreateOnly: true}
	case Adopt:
		if refusal, err := p.protected(ctx, t, seen); err != nil || refusal != "" {
			return p.keptFrom(t, seen, refusal, err)
		}
		options = onto(seen)
	case Update, Recover:
		options = onto(seen)
	case Collision:
		return p.act(ctx, t, decision, seen)
	case Deferred:
		if seen.Presence == observe.Unknown {
			return p.unwatched(ctx, t, decision, seen, tolerated)
		}
		return p.act(ctx, t, decision, seen)
	default:
		return taskResult{seen: seen}
	}
	if p.engine.SkipPreflight {
		return taskResult{seen: seen}
	}
	what := attemptOf(t, seen)
	passing := what
	passing.before = tolerated.stage
	passed := p.memory.passed[t.step.Ref]
	if (passed.attempt == what || passed.attempt == passing) && p.engine.Clock.Now().Before(passed.until) {
		return taskResult{seen: seen}
	}
	corrected, err := p.try(ctx, t, decision, seen, options)
	if err == nil {
		return taskResult{seen: seen, passed: &what, events: corrected}
	}
	if tolerated.tolerates(err) {
		return taskResult{seen: seen, passed: &passing, events: corrected}
	}
	return taskResult{seen: seen, err: err, events: corrected}
}

// try asks the server about the write of a decision.
func (p *pass) try(ctx context.Context, t task, decision Decision, seen Seen, options targetclient.ApplyOptions) ([]Event, error) {
	if decision.Action == Adopt {
		if tried, err := p.tryTakeover(ctx, t, options); tried || err != nil && !apierrors.IsInvalid(err) {
			return nil, err
		}
	}
	yielded, err := p.triedWithout(ctx, t, decision, seen)
	if err != nil {
		return nil, err
	}
	body, err := p.manifests.Without(ctx, t.step, yielded)
	if err != nil {
		return nil, err
	}
	options.DryRun = true
	_, corrected, err := p.send(ctx, t, t.step.Ref, body, options)
	return corrected, err
}

// tryTakeover is Trial.Adopt for an object as it was judged.
func (p *pass) tryTakeover(ctx context.Context, t task, options targetclient.ApplyOptions) (bool, error) {
	wanted, err := p.manifests.Decoded(ctx, t.step.Ref)
	if err != nil {
		return false, err
	}
	live, err := p.engine.Reader.Read(ctx, t.step.Ref)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil // an apply says that it is another object by now
		}
		return false, err
	}
	return p.trial(t.step.Ref, options).Adopt(ctx, t.step, wanted, live)
}

// triedWithout returns the fields that a write of a decision leaves to others, as far as that
// changes what the server says to it.
func (p *pass) triedWithout(ctx context.Context, t task, decision Decision, seen Seen) ([]string, error) {
	if decision.Action == Create {
		return nil, nil
	}
	if !managedfields.OnlyGrows(t.step.ID) {
		return p.yielded(t.step.ID), nil
	}
	yielded, _, err := p.leftIn(ctx, t, seen)
	return yielded, err
}

// unwatched judges an object whose watch has not answered yet: its kind may not be
// served at all, and may be about to be.
func (p *pass) unwatched(ctx context.Context, t task, decision Decision, seen Seen, tolerated tolerance) taskResult {
	if _, err := p.engine.Reader.Mapping(ctx, t.step.GroupVersionKind()); err != nil {
		if tolerated.tolerates(err) {
			return taskResult{seen: seen}
		}
		return taskResult{seen: seen, err: err}
	}
	return p.act(ctx, t, decision, seen)
}

// tolerance is what an object of a later stage of the phase may be refused for now.
type tolerance struct {
	// stage that is to be reached, counted from 1: the tolerance ends with it.
	stage     int
	tolerates func(error) bool
}

// tolerance is of a refusal that only means that the object's namespace or kind
// is made, or defined anew, by an earlier stage of the same phase, which has yet to be
// reached.
func (p *pass) tolerance(tasks []task, t task, at place) tolerance {
	return tolerance{stage: at.stage + 1, tolerates: func(err error) bool {
		if t.stage == at.stage {
			return false
		}
		if meta.IsNoMatchError(err) || apierrors.IsInvalid(err) || isSchemaError(err) {
			return listedBefore(tasks, t, func(id manifest.ID) bool { return id.DefinesKindsOf(t.step.Group) })
		}
		return apierrors.IsNotFound(err) && listedBefore(tasks, t, func(id manifest.ID) bool { return id.IsNamespace(t.step.Namespace) })
	}}
}

func listedBefore(tasks []task, t task, match func(manifest.ID) bool) bool {
	for _, other := range tasks {
		if other.stage < t.stage && match(other.step.ID) {
			return true
		}
	}
	return false
}
