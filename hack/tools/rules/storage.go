package main

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// samples are a series of a test.
type samples struct {
	metric labels.Labels
	points []point
}

// point is a value at a time since the beginning of the test.
type point struct {
	at    time.Duration
	value float64
}

// memory is a storage of Prometheus that holds the series of a test.
type memory []samples

// Querier implements storage.Queryable.
func (m memory) Querier(int64, int64) (storage.Querier, error) { return querier{memory: m}, nil }

type querier struct {
	storage.LabelQuerier // not asked by expressions
	memory
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{}
	for _, s := range q.memory {
		if !matches(s.metric, matchers) {
			continue
		}
		var list []chunks.Sample
		for _, p := range s.points {
			list = append(list, sample{p})
		}
		found.series = append(found.series, storage.NewListSeries(s.metric, list))
	}
	return found
}

func matches(metric labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(metric.Get(m.Name)) {
			return false
		}
	}
	return true
}

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	series []storage.Series
	next   int
}

func (s *seriesSet) Next() bool {
	s.next++
	return s.next <= len(s.series)
}

func (s *seriesSet) At() storage.Series                { return s.series[s.next-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// sample implements chunks.Sample.
type sample struct{ point }

func (s sample) T() int64                      { return s.at.Milliseconds() }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
