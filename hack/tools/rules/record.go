package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// until is the last time that a test asks about.
func (c testCase) until() time.Duration {
	last := time.Duration(0)
	for _, want := range c.Alerts {
		last = max(last, time.Duration(want.EvalTime))
	}
	for _, want := range c.Records {
		last = max(last, time.Duration(want.EvalTime))
	}
	return last
}

// record adds to the series of a test what recording rules make of them. A rule sees what the
// rules before it made.
func record(ctx context.Context, engine *promql.Engine, rules []rule, series []samples, until, interval time.Duration) (memory, error) {
	all := memory(series)
	for _, r := range rules {
		if r.Record == "" {
			continue
		}
		made := map[string]*samples{}
		for now := time.Duration(0); now <= until; now += interval {
			found, err := (evaluation{engine: engine, storage: all}).query(ctx, r.Expr, now)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Record, err)
			}
			for _, one := range found {
				builder := labels.NewBuilder(one.Metric).Set(labels.MetricName, r.Record)
				for name, value := range r.Labels {
					builder.Set(name, value)
				}
				metric := builder.Labels()
				if made[metric.String()] == nil {
					made[metric.String()] = &samples{metric: metric}
				}
				made[metric.String()].points = append(made[metric.String()].points, point{at: now, value: one.F})
			}
		}
		for _, one := range made {
			all = append(all, *one)
		}
	}
	return all, nil
}

// check says how what an expression gives differs from what is wanted.
func (v value) check(ctx context.Context, engine *promql.Engine, storage memory) error {
	found, err := (evaluation{engine: engine, storage: storage}).query(ctx, v.Expr, time.Duration(v.EvalTime))
	if err != nil {
		return err
	}
	got, want := map[string]float64{}, map[string]float64{}
	for _, one := range found {
		got[one.Metric.String()] = round(one.F)
	}
	for _, one := range v.Samples {
		metric, err := parser.NewParser(parser.Options{}).ParseMetric(one.Labels)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Labels, err)
		}
		want[metric.String()] = round(one.Value)
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("it gives %v, want %v", got, want)
	}
	return nil
}

// round leaves out what computing with floats adds.
func round(value float64) float64 { return math.Round(value*1e6) / 1e6 }
