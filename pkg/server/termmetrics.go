package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/penstock-project/penstock/pkg/controller/metrics"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/store"
)

// termMetrics are the metrics of the term that runs here, if one does: a replica
// that does not lead has nothing to say about revisions, and what a former term
// counted is of no use to the next. It is a registry of Prometheus' own, because
// component-base keeps every one that it ever made.
type termMetrics struct {
	current atomic.Pointer[prometheus.Registry]
}

var _ prometheus.Gatherer = &termMetrics{}

// begin returns the registry of a new term.
func (m *termMetrics) begin() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	m.current.Store(registry)
	return registry
}

// end forgets the term.
func (m *termMetrics) end() { m.current.Store(nil) }

// leading is true while a term runs.
func (m *termMetrics) leading() bool { return m.current.Load() != nil }

// Gather implements prometheus.Gatherer.
func (m *termMetrics) Gather() ([]*dto.MetricFamily, error) {
	registry := m.current.Load()
	if registry == nil {
		return nil, nil
	}
	return registry.Gather()
}

// measured is what this server tells of itself and of its controllers.
func (s *Server) measured() (prometheus.Gatherer, error) {
	process := prometheus.NewRegistry()
	err := process.Register(metrics.Process{
		Leading:    s.term.leading,
		Degraded:   func() bool { return s.extra.decision.Degraded != "" || s.extra.database.down() != nil },
		Full:       s.extra.health.Full,
		Unreadable: s.unreadable,
		Volume:     s.extra.health.Volume,
		Expiries:   s.expiries,
		Skew:       s.extra.host.skew.seconds,
	})
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of the server: %w", err)
	}
	gatherers := firstWins{process, s.term}
	if embedded := s.extra.database.embedded; embedded != nil {
		gatherers = append(gatherers, embedded)
	}
	return gatherers, nil
}

// unreadable are the numbers of records that cannot be read, by kind.
func (s *Server) unreadable() map[string]int {
	ctx, cancel := context.WithTimeout(context.Background(), recordsPatience)
	defer cancel()
	found, keys := map[string]int{}, store.NewKeys(storagePrefix)
	for _, kind := range store.RecordKinds() {
		found[kind] = 0
	}
	for _, record := range s.extra.unreadable.List(ctx) {
		found[keys.KindOf(record.Key)]++
	}
	return found
}

// expiries of the certificate that is shown, and of the authority behind it.
func (s *Server) expiries() map[string]time.Time {
	ends := map[string]time.Time{}
	if cert := s.generic.SecureServingInfo.Cert; cert != nil {
		shown, _ := cert.CurrentCertKeyContent()
		ends["serving"] = registration.Expiry(shown)
	}
	if authority := s.extra.trust.Authority(); authority != nil {
		ends["authority"] = registration.Expiry(authority.PEM)
	}
	return ends
}
