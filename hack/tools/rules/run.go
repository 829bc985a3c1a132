package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
)

// run does all tests of a file, notes in fired which alerts they saw firing, and
// joins what is wrong.
func run(ctx context.Context, file testFile, rules []rule, fired map[string]bool) error {
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: 1_000_000, Timeout: time.Minute,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Duration(file.EvaluationInterval).Milliseconds() },
		Parser:                   parser.NewParser(parser.Options{}),
	})
	for _, r := range rules {
		fired[r.Alert+r.Record] = fired[r.Alert+r.Record]
	}
	var errs []error
	for _, test := range file.Tests {
		series, err := test.series()
		if err != nil {
			return fmt.Errorf("%s: %w", test.Name, err)
		}
		recorded, err := record(ctx, engine, rules, series, test.until(), time.Duration(file.EvaluationInterval))
		if err != nil {
			return fmt.Errorf("%s: %w", test.Name, err)
		}
		for _, want := range test.Records {
			if err := want.check(ctx, engine, recorded); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s after %s: %w", test.Name, want.Expr, want.EvalTime, err))
			}
			if _, is := fired[want.Expr]; is && len(want.Samples) > 0 {
				fired[want.Expr] = true
			}
		}
		for _, want := range test.Alerts {
			i := slices.IndexFunc(rules, func(r rule) bool { return r.Alert == want.Alert })
			if i < 0 {
				errs = append(errs, fmt.Errorf("%s: there is no alert %s", test.Name, want.Alert))
				continue
			}
			evaluation := evaluation{engine: engine, storage: recorded, rule: rules[i], interval: time.Duration(file.EvaluationInterval)}
			got, err := evaluation.firing(ctx, time.Duration(want.EvalTime))
			if err == nil {
				err = compare(want.Firing, got)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %s after %s: %w", test.Name, want.Alert, want.EvalTime, err))
			}
			fired[want.Alert] = fired[want.Alert] || len(want.Firing) > 0
		}
	}
	return errors.Join(errs...)
}

// evaluation is one rule on the series of one test.
type evaluation struct {
	engine   *promql.Engine
	storage  memory
	rule     rule
	interval time.Duration
}

// firing are the alerts that fire at a time: those whose expression had them in
// each evaluation since as long as the rule asks.
func (e evaluation) firing(ctx context.Context, until time.Duration) ([]alert, error) {
	since := map[string]time.Duration{}
	var firing []alert
	for now := time.Duration(0); now <= until; now += e.interval {
		found, err := e.query(ctx, e.rule.Expr, now)
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		firing = nil
		for _, s := range found {
			key := s.Metric.String()
			seen[key] = true
			if _, active := since[key]; !active {
				since[key] = now
			}
			if now-since[key] < time.Duration(e.rule.For) {
				continue
			}
			one, err := e.expand(ctx, s, now)
			if err != nil {
				return nil, err
			}
			firing = append(firing, one)
		}
		maps.DeleteFunc(since, func(key string, _ time.Duration) bool { return !seen[key] })
	}
	return firing, nil
}

func (e evaluation) query(ctx context.Context, expr string, at time.Duration) (promql.Vector, error) {
	query, err := e.engine.NewInstantQuery(ctx, e.storage, nil, expr, time.UnixMilli(at.Milliseconds()))
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	return result.Vector()
}

// expand makes the alert of a sample, with its templates filled in.
func (e evaluation) expand(ctx context.Context, s promql.Sample, now time.Duration) (alert, error) {
	data := template.AlertTemplateData(asMap(s.Metric), nil, "", s)
	query := func(ctx context.Context, q string, t time.Time) (promql.Vector, error) {
		return e.query(ctx, q, time.Duration(t.UnixMilli())*time.Millisecond)
	}
	text := func(name, value string) (string, error) {
		const shorthands = `{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}`
		return template.NewTemplateExpander(ctx, shorthands+value, name, data, model.Time(now.Milliseconds()), query, nil, nil).Expand()
	}
	made := alert{Labels: asMap(s.Metric, labels.MetricName, labels.AlertName), Annotations: map[string]string{}}
	for to, from := range map[*map[string]string]map[string]string{&made.Labels: e.rule.Labels, &made.Annotations: e.rule.Annotations} {
		for name, value := range from {
			expanded, err := text(name, value)
			if err != nil {
				return alert{}, fmt.Errorf("%s: %w", name, err)
			}
			(*to)[name] = expanded
		}
	}
	return made, nil
}

// compare tells what is missing and what is too much.
func compare(want, got []alert) error {
	var errs []error
	for _, w := range want {
		i := slices.IndexFunc(got, func(g alert) bool {
			return maps.Equal(w.Labels, g.Labels) && maps.Equal(w.Annotations, g.Annotations)
		})
		if i < 0 {
			errs = append(errs, fmt.Errorf("does not fire: %v %q", w.Labels, w.Annotations))
			continue
		}
		got = slices.Delete(slices.Clone(got), i, i+1)
	}
	for _, g := range got {
		errs = append(errs, fmt.Errorf("fires: %v %q", g.Labels, g.Annotations))
	}
	return errors.Join(errs...)
}
