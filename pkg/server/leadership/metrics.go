package leadership

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Metrics are the metrics of the term that runs here, if one does: a replica
// that does not lead has nothing to say about revisions, and what a former term
// counted is of no use to the next. It is a registry of Prometheus' own, because
// component-base keeps every one that it ever made.
type Metrics struct {
	current atomic.Pointer[prometheus.Registry]
}

var _ prometheus.Gatherer = &Metrics{}

// begin returns the registry of a new term.
func (m *Metrics) begin() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	m.current.Store(registry)
	return registry
}

// end forgets the term.
func (m *Metrics) end() { m.current.Store(nil) }

// Leading is true while a term runs.
func (m *Metrics) Leading() bool { return m.current.Load() != nil }

// Gather implements prometheus.Gatherer.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) {
	registry := m.current.Load()
	if registry == nil {
		return nil, nil
	}
	return registry.Gather()
}
