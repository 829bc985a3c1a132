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
	var objects []*object
	for si, stg := range p.Layers[at.layer].Stages[at.stage:] {
		if stg.Phase != phase {
			break
		}
		for _, step := range stg.Steps {
			objects = append(objects, p.object(place{at.layer, at.stage + si}, step))
		}
	}
	results, err := p.carryOut(ctx, objects, func(o *object, ctx context.Context) objectResult {
		return o.check(ctx, toleranceOf(o, objects, at))
	})
	if err != nil {
		return nil, err
	}
	refused := refusals{}
	for i, o := range objects {
		p.conclude(ctx, o, &results[i])
		if results[i].passed != nil {
			p.memory.passed[o.step.Ref] = check{*results[i].passed, p.engine.Clock.Now().Add(settledFor)}
		}
		if failure := results[i].failure; failure != nil {
			refused[o.step.ID] = *failure
		}
	}
	for _, o := range objects {
		// One that is over is not asked again while there is another refusal.
		if until := p.memory.passed[o.step.Ref].until; len(refused) > 0 && p.engine.Clock.Now().Before(until) {
			p.due(until)
		}
	}
	return refused, nil
}

// check tries one object, and once more from a live read when it turns out to be
// another than was seen.
func (o *object) check(ctx context.Context, tolerated tolerance) objectResult {
	seen := o.seen
	if earlier, ok := o.backedOff(seen); ok {
		return earlier
	}
	decision := o.decide(seen)
	result := o.dryRun(ctx, decision, seen, tolerated)
	if !targetclient.IsOvertaken(result.err) {
		return result
	}
	live, err := o.readLive(ctx, o.step.Ref)
	if err != nil {
		return objectResult{seen: seen, err: err}
	}
	again := o.decide(live)
	result = o.dryRun(ctx, again, live, tolerated)
	result.reread = true
	if again.Action == Adopt || again.Action == Update || again.Action == Repair {
		result.found = &live.Observation
	}
	result.hidden = decision.Action == Create && live.Presence == observe.Present
	return result
}

// dryRun asks the server what it would say to a decision. A result without
// failure means that the stage may be reached as far as this object goes.
func (o *object) dryRun(ctx context.Context, decision Decision, seen Seen, tolerated tolerance) objectResult {
	var options targetclient.ApplyOptions
	switch decision.Action {
	case Create:
		if _, done := o.isDone(ctx, seen); done {
			return objectResult{seen: seen}
		}
		options = targetclient.ApplyOptions{CreateOnly: true}
	case Adopt, Update, Repair:
		options = onto(seen)
	case Collision:
		return o.act(ctx, decision, seen)
	case Deferred:
		if seen.Presence == observe.Unknown {
			return o.unwatched(ctx, decision, seen, tolerated)
		}
		return o.act(ctx, decision, seen)
	default:
		return objectResult{seen: seen}
	}
	what := o.attempt(seen)
	passing := what
	passing.before = tolerated.stage
	passed := o.passed
	if (passed.attempt == what || passed.attempt == passing) && o.engine.Clock.Now().Before(passed.until) {
		return objectResult{seen: seen}
	}
	if decision.Action == Adopt {
		if refusal, err := o.protected(ctx, seen); err != nil || refusal != "" {
			return o.keptFrom(seen, refusal, err)
		}
	}
	if o.engine.SkipPreflight {
		return objectResult{seen: seen}
	}
	corrected, err := o.try(ctx, decision, seen, options)
	if err == nil {
		return objectResult{seen: seen, passed: &what, events: corrected}
	}
	if tolerated.tolerates(err) {
		return objectResult{seen: seen, passed: &passing, events: corrected}
	}
	return objectResult{seen: seen, err: err, events: corrected}
}

// try asks the server about the write of a decision.
func (o *object) try(ctx context.Context, decision Decision, seen Seen, options targetclient.ApplyOptions) ([]Event, error) {
	if decision.Action == Adopt {
		if tried, err := o.tryTakeover(ctx, options); tried || err != nil && !apierrors.IsInvalid(err) {
			return nil, err
		}
	}
	yielded, err := o.triedWithout(ctx, decision, seen)
	if err != nil {
		return nil, err
	}
	body, err := o.manifests.Without(ctx, o.step, yielded)
	if err != nil {
		return nil, err
	}
	options.DryRun = true
	_, corrected, err := o.send(ctx, o.step.Ref, body, options)
	return corrected, err
}

// tryTakeover is Trial.Adopt for an object as it was judged.
func (o *object) tryTakeover(ctx context.Context, options targetclient.ApplyOptions) (bool, error) {
	wanted, err := o.manifests.Decoded(ctx, o.step.Ref)
	if err != nil {
		return false, err
	}
	live, err := o.engine.Reader.Read(ctx, o.step.Ref)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil // an apply says that it is another object by now
		}
		return false, err
	}
	return o.trial(o.step.Ref, options).Adopt(ctx, o.step, wanted, live)
}

// triedWithout returns the fields that a write of a decision leaves to others, as far as that
// changes what the server says to it.
func (o *object) triedWithout(ctx context.Context, decision Decision, seen Seen) ([]string, error) {
	if decision.Action == Create {
		return nil, nil
	}
	if !managedfields.OnlyGrows(o.step.ID) {
		return o.yielded(), nil
	}
	yielded, _, err := o.leftIn(ctx, seen)
	return yielded, err
}

// unwatched judges an object whose watch has not answered yet: its kind might not be
// served at all, and may be about to be.
func (o *object) unwatched(ctx context.Context, decision Decision, seen Seen, tolerated tolerance) objectResult {
	if _, err := o.engine.Reader.Mapping(ctx, o.step.GroupVersionKind()); err != nil {
		if tolerated.tolerates(err) {
			return objectResult{seen: seen}
		}
		return objectResult{seen: seen, err: err}
	}
	return o.act(ctx, decision, seen)
}

// tolerance is a refusal that an object of a later stage of the phase may have for now.
type tolerance struct {
	// stage that is to be reached, counted from 1: the tolerance ends with it.
	stage     int
	tolerates func(error) bool
}

// toleranceOf is of a refusal that only means that the object's namespace or kind
// is made, or defined anew, by an earlier stage of the same phase, which has yet to be
// reached.
func toleranceOf(o *object, objects []*object, at place) tolerance {
	return tolerance{stage: at.stage + 1, tolerates: func(err error) bool {
		if o.stage == at.stage {
			return false
		}
		if meta.IsNoMatchError(err) || apierrors.IsInvalid(err) || isSchemaError(err) {
			return listedBefore(objects, o, func(id manifest.ID) bool { return id.DefinesKindsOf(o.step.Group) })
		}
		return apierrors.IsNotFound(err) && listedBefore(objects, o, func(id manifest.ID) bool { return id.IsNamespace(o.step.Namespace) })
	}}
}

func listedBefore(objects []*object, o *object, match func(manifest.ID) bool) bool {
	for _, other := range objects {
		if other.stage < o.stage && match(other.step.ID) {
			return true
		}
	}
	return false
}
