package leadership

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Metrics holds the metrics of the current term, if this replica leads. Only the leader has metrics
// of revisions, and each term starts with new counters. Metrics uses a Prometheus registry, because
// component-base keeps every registry that it has created.
type Metrics struct {
	current atomic.Pointer[prometheus.Registry]
}

var _ prometheus.Gatherer = &Metrics{}

func (m *Metrics) begin() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	m.current.Store(registry)
	return registry
}

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
