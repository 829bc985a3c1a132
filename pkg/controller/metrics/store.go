package metrics

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/pkg/store/fsck"
)

// mostExtensions bounds the extensions with their own series for their size. Further extensions
// share one series, whose name no extension can have.
const (
	maxExtensions   = 100
	otherExtensions = "(other)"
)

// Store exposes the metrics of the whole store, in one term.
type Store struct {
	collected *prometheus.CounterVec

	mu sync.Mutex
	// packs is negative before the first collection. report is nil before the first check.
	packs   int
	report  *fsck.Report
	checked time.Time
}

// AddStore registers the metrics of the store for a term.
func AddStore(registry prometheus.Registerer) (*Store, error) {
	s := &Store{collected: catalogue.Counter(catalogue.Collected), packs: -1}
	for _, collector := range []prometheus.Collector{s, s.collected} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of the store: %w", err)
		}
	}
	return s, nil
}

// Collected records a collection: the number of deleted packs, and of packs left.
func (s *Store) Collected(deleted, present int) {
	s.collected.WithLabelValues().Add(float64(deleted))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs = present
}

// Checked records a check of the whole store.
func (s *Store) Checked(report fsck.Report, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report, s.checked = &report, at
}

// Describe implements prometheus.Collector.
func (*Store) Describe(to chan<- *prometheus.Desc) {
	for _, name := range []string{catalogue.Packs, catalogue.Damaged, catalogue.Checked, catalogue.ExtensionSize} {
		to <- catalogue.Desc(name)
	}
}

// Collect implements prometheus.Collector.
func (s *Store) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gauge := func(name string, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(catalogue.Desc(name), prometheus.GaugeValue, value, labels...)
	}
	if s.packs >= 0 {
		gauge(catalogue.Packs, float64(s.packs))
	}
	if s.report == nil {
		return
	}
	gauge(catalogue.Checked, float64(s.checked.Unix()))
	for kind, n := range s.report.Counts() {
		gauge(catalogue.Damaged, float64(n), string(kind))
	}
	others := int64(0)
	for i, extension := range s.report.Extensions {
		if i < maxExtensions {
			gauge(catalogue.ExtensionSize, float64(extension.Bytes), extension.Name)
			continue
		}
		others += extension.Bytes
	}
	if others > 0 {
		gauge(catalogue.ExtensionSize, float64(others), otherExtensions)
	}
}
