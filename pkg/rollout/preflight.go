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

// preflight tries by dry-run the writes of the remaining stages of a phase. So no write of a phase
// starts while one of its objects would be refused or collide. A passed check is reused for
// settledFor while the object and its manifest stay the same.
//
// An installation by levels has no preflight: a half-written phase can break nothing, so a refused
// object does not stop its siblings.
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
		// While another object is refused, a passed check is repeated when it expires.
		if until := p.memory.passed[o.step.Ref].until; len(refused) > 0 && p.engine.Clock.Now().Before(until) {
			p.due(until)
		}
	}
	return refused, nil
}

// check tries one object. If the object has changed since it was seen, check reads it and tries
// again.
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

// dryRun tries the write of a decision. A result without a failure means that this object does not
// prevent the stage from being reached.
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

// try sends the write of a decision as a dry-run.
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

func (o *object) tryTakeover(ctx context.Context, options targetclient.ApplyOptions) (bool, error) {
	wanted, err := o.manifests.Decoded(ctx, o.step.Ref)
	if err != nil {
		return false, err
	}
	live, err := o.engine.Reader.Read(ctx, o.step.Ref)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil // the dry-run of the apply reports that the object has changed
		}
		return false, err
	}
	return o.trial(o.step.Ref, options).Adopt(ctx, o.step, wanted, live)
}

// triedWithout returns the yielded fields that a dry-run omits. It reads the object only if these
// fields may change the server's answer.
func (o *object) triedWithout(ctx context.Context, decision Decision, seen Seen) ([]string, error) {
	if decision.Action == Create {
		return nil, nil
	}
	if !managedfields.OnlyGrows(o.step.ID) {
		return o.yielded(), nil
	}
	yielded, _, err := o.yieldedFields(ctx, seen)
	return yielded, err
}

// unwatched checks an object whose watch has not answered yet. Its kind is possibly not served, or an
// earlier stage may define it.
func (o *object) unwatched(ctx context.Context, decision Decision, seen Seen, tolerated tolerance) objectResult {
	if _, err := o.engine.Reader.Mapping(ctx, o.step.GroupVersionKind()); err != nil {
		if tolerated.tolerates(err) {
			return objectResult{seen: seen}
		}
		return objectResult{seen: seen, err: err}
	}
	return o.act(ctx, decision, seen)
}

// tolerance describes refusals that an object of a later stage of the phase may have for now.
type tolerance struct {
	// stage that is to be reached, counted from 1: the tolerance ends with it.
	stage     int
	tolerates func(error) bool
}

// toleranceOf returns the tolerance of an object: an earlier stage of the same phase, which is not
// reached yet, creates its namespace, or defines or changes its kind.
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
