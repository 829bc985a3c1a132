package rollout

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/manifest"
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
func (p *pass) preflight(ctx context.Context, at place) (bool, error) {
	if p.Layers[at.layer].Levels {
		return true, nil
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
	results, err := p.carryOut(ctx, tasks, func(ctx context.Context, t task) carried {
		return p.check(ctx, t, p.provided(tasks, t, at))
	})
	if err != nil {
		return false, err
	}
	ready := true
	for i, t := range tasks {
		p.conclude(t, &results[i])
		if results[i].passed != nil {
			p.memory.passed[t.step.Ref] = check{*results[i].passed, p.engine.Clock.Now().Add(settledFor)}
		}
		if failure := results[i].failure; failure != nil {
			p.refused[t.step.ID] = *failure
			ready = false
		}
	}
	for _, t := range tasks {
		// One that is over is not asked again while there is another refusal.
		if until := p.memory.passed[t.step.Ref].until; !ready && p.engine.Clock.Now().Before(until) {
			p.due(until)
		}
	}
	return ready, nil
}

// check tries one object, and once more from a live read when it turns out to be
// another than was seen.
func (p *pass) check(ctx context.Context, t task, provided excuse) carried {
	seen := p.look(t.step.ID)
	if held, ok := p.held(t, seen); ok {
		return held
	}
	decision := p.decide(t, seen)
	result := p.dryRun(ctx, t, decision, seen, provided)
	if !targetclient.IsOvertaken(result.err) {
		return result
	}
	live, err := p.readLive(ctx, t.step.Ref)
	if err != nil {
		return carried{seen: seen, err: err}
	}
	again := p.decide(t, live)
	result = p.dryRun(ctx, t, again, live, provided)
	result.reread = true
	if again.Action == Adopt || again.Action == Update || again.Action == Recover {
		result.found = &live.Observation
	}
	result.hidden = decision.Action == Create && live.Presence == observe.Present
	return result
}

// dryRun asks the server what it would say to a decision. A result without
// failure means that the stage may be reached as far as this object goes.
func (p *pass) dryRun(ctx context.Context, t task, decision Decision, seen Seen, provided excuse) carried {
	var options targetclient.ApplyOptions
	switch decision.Action {
	case Create:
		options = targetclient.ApplyOptions{CreateOnly: true}
	case Update, Adopt, Recover:
		options = onto(seen)
	case Collision:
		return p.act(ctx, t, decision, seen)
	case Deferred:
		if seen.Presence == observe.Unknown {
			return p.unwatched(ctx, t, decision, seen, provided)
		}
		return p.act(ctx, t, decision, seen)
	default:
		return carried{seen: seen}
	}
	if p.engine.SkipPreflight {
		return carried{seen: seen}
	}
	what := attemptOf(t, seen)
	excused := what
	excused.before = provided.stage
	passed := p.memory.passed[t.step.Ref]
	if (passed.attempt == what || passed.attempt == excused) && p.engine.Clock.Now().Before(passed.until) {
		return carried{seen: seen}
	}
	var yielded []string
	if !options.CreateOnly {
		yielded = p.yielded(t.step.ID)
	}
	body, err := p.manifests.Without(ctx, t.step, yielded)
	if err != nil {
		return carried{seen: seen, err: err}
	}
	options.DryRun = true
	_, corrected, err := p.send(ctx, t, t.step.Ref, body, options)
	if err == nil {
		return carried{seen: seen, passed: &what, events: corrected}
	}
	if provided.excuses(err) {
		return carried{seen: seen, passed: &excused, events: corrected}
	}
	return carried{seen: seen, err: err, events: corrected}
}

// unwatched judges an object whose watch has not answered yet: its kind may not be
// served at all, and may be about to be.
func (p *pass) unwatched(ctx context.Context, t task, decision Decision, seen Seen, provided excuse) carried {
	if _, err := p.engine.Reader.Mapping(t.step.GroupVersionKind()); err != nil {
		if provided.excuses(err) {
			return carried{seen: seen}
		}
		return carried{seen: seen, err: err}
	}
	return p.act(ctx, t, decision, seen)
}

// excuse is what an object of a later stage of the phase may be refused for now.
type excuse struct {
	// stage that is to be reached, counted from 1: the excuse ends with it.
	stage   int
	excuses func(error) bool
}

// provided excuses a refusal that only means that the object's namespace or kind
// is made, or defined anew, by an earlier stage of the same phase, which has yet to be
// reached.
func (p *pass) provided(tasks []task, t task, at place) excuse {
	return excuse{stage: at.stage + 1, excuses: func(err error) bool {
		if t.stage == at.stage {
			return false
		}
		if meta.IsNoMatchError(err) || apierrors.IsInvalid(err) || isSchemaError(err) {
			return provides(tasks, t, func(id manifest.ID) bool { return id.DefinesKindsOf(t.step.Group) })
		}
		return apierrors.IsNotFound(err) && provides(tasks, t, func(id manifest.ID) bool { return id.IsNamespace(t.step.Namespace) })
	}}
}

func provides(tasks []task, t task, match func(manifest.ID) bool) bool {
	for _, other := range tasks {
		if other.stage < t.stage && match(other.step.ID) {
			return true
		}
	}
	return false
}
