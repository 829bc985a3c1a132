package rollout

import (
	"context"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

func (p *pass) report(ctx context.Context, found passed) Report {
	report := Report{Inventory: p.saved, Leaving: found.failures, Acknowledge: found.acknowledge, Events: p.events}
	for li := range p.Layers {
		report.Layers = append(report.Layers, p.reportLayer(ctx, li, found.refused))
	}
	p.age(&report)
	report.Idle = p.requeue == 0 && len(report.Leaving) == 0
	p.explain(ctx, &report)
	report.RequeueAfter = p.requeue
	return report
}

// age sets Stuck for objects that were refused for the same reason, or held by finalizers, for too
// long. It drops refusals that have ended; a moment of unknown state does not end a refusal.
func (p *pass) age(report *Report) {
	lasts := func(f *Failure) bool { return f.Refused || f.Held }
	if len(p.memory.refusals) == 0 && !report.has(lasts) {
		return
	}
	now, kept := p.engine.Clock.Now(), map[manifest.Ref]refusal{}
	report.has(func(f *Failure) bool {
		since, known := p.memory.refusals[f.Ref]
		switch {
		case !lasts(f) && f.Reason == ReasonWaiting && known:
			kept[f.Ref] = since
		case !lasts(f):
		case !known || since.reason != f.Reason:
			kept[f.Ref] = refusal{reason: f.Reason, since: now}
		default:
			kept[f.Ref] = since
		}
		patience := StuckAfter
		if f.Held {
			patience = HeldAfter
		}
		if at := kept[f.Ref].since.Add(patience); lasts(f) && now.Before(at) {
			p.due(at)
		} else {
			f.Stuck = lasts(f)
		}
		return false
	})
	p.memory.refusals = kept
}

// has calls is for each failure of the report, until one returns true. is may change the failures.
func (r *Report) has(is func(*Failure) bool) bool {
	var all [][]Failure
	for i := range r.Layers {
		layer := &r.Layers[i]
		for j := range layer.Phases {
			all = append(all, layer.Phases[j].Failures)
		}
		if layer.Level != nil {
			all = append(all, layer.Level.Failures)
		}
	}
	for _, failures := range append(all, r.Leaving) {
		for i := range failures {
			if is(&failures[i]) {
				return true
			}
		}
	}
	return false
}

func (p *pass) reportLayer(ctx context.Context, li int, refused refusals) LayerReport {
	layer := p.Layers[li]
	report := LayerReport{Revision: layer.Revision, Complete: p.inventory.Reached[layer.Key] >= len(layer.Stages)}
	level := p.runningLevel(li)
	phases := map[string]int{}
	for si, stg := range layer.Stages {
		// With levels, a phase occurs once in each level.
		n, known := phases[stg.Phase]
		if !known {
			n = len(report.Phases)
			phases[stg.Phase] = n
			report.Phases = append(report.Phases, PhaseReport{Name: stg.Phase})
		}
		at, phase := place{li, si}, &report.Phases[n]
		failuresBefore := len(phase.Failures)
		p.reportStage(ctx, at, phase, refused)
		level.add(stg, phase.Failures[failuresBefore:])
		report.Complete = report.Complete && p.complete(ctx, at)
	}
	report.Unknown = allUnknown(report.Phases)
	if level != nil && !report.Complete {
		report.Level = level
	}
	return report
}

// allUnknown reports whether the phases have failures, and all of them are Unknown.
func allUnknown(phases []PhaseReport) bool {
	found := false
	for _, phase := range phases {
		for _, failure := range phase.Failures {
			if !failure.Unknown {
				return false
			}
			found = true
		}
	}
	return found
}

// runningLevel starts the report of the level of the last reached stage. The level never decreases:
// the report lists earlier objects that became unready, and the rollout waits for them.
func (p *pass) runningLevel(li int) *LevelReport {
	layer := p.Layers[li]
	if !layer.Levels || len(layer.Stages) == 0 {
		return nil
	}
	last := max(0, min(p.inventory.Reached[layer.Key], len(layer.Stages))-1)
	return &LevelReport{Number: layer.Stages[last].Level}
}

// add counts a stage. It does nothing for a nil report, which means that the layer has no levels.
func (l *LevelReport) add(stg stage.Stage, failures []Failure) {
	switch {
	case l == nil:
	case stg.Level > l.Number:
		l.Waiting += len(stg.Steps)
	default:
		l.Failures = append(l.Failures, failures...)
		if stg.Level == l.Number {
			l.Objects += len(stg.Steps)
			l.Unready += len(failures)
		}
	}
}

func (p *pass) reportStage(ctx context.Context, at place, phase *PhaseReport, refusals refusals) {
	stg := p.stage(at)
	reached := p.isReached(at)
	phase.Reached = phase.Reached || reached
	gates := p.closedGates(ctx, at, stg, reached)
	for _, step := range stg.Steps {
		phase.Objects++
		failure, refused := refusals[step.ID]
		if drift := p.outcomes[step.ID].drift; drift != nil && p.places[step.ID] == at {
			phase.Drift = append(phase.Drift, *drift)
		}
		switch have := p.places[step.ID]; {
		case !reached:
			phase.Pending++
			// Only the leading layer reports the objects that prevent its next stage from starting.
			if refused && at.layer == p.leading() {
				phase.Failures = append(phase.Failures, failure)
			}
		case have != at:
			phase.Superseded++
		case p.outcomes[step.ID].failure != nil:
			phase.Failures = append(phase.Failures, *p.outcomes[step.ID].failure)
		case p.outcomes[step.ID].applied:
			phase.Applied++
			if gate, waits := gates[step.ID]; waits {
				phase.Failures = append(phase.Failures, Failure{Ref: step.Ref, Reason: ReasonProbe, Message: gate.message, Unknown: gate.unknown})
			} else {
				phase.Available++
			}
		}
	}
}

type closed struct {
	message string
	unknown bool
}

// closedGates returns the closed gates of a reached stage, by object.
func (p *pass) closedGates(ctx context.Context, at place, stg stage.Stage, reached bool) map[manifest.ID]closed {
	gates := map[manifest.ID]closed{}
	for _, gate := range stg.Gates {
		if !reached || p.places[gate.ID] != at || !p.outcomes[gate.ID].applied {
			continue
		}
		if verdict, known := p.verdict(ctx, gate); verdict.Status != probe.True {
			gates[gate.ID] = closed{verdict.Message, !known}
		}
	}
	return gates
}
