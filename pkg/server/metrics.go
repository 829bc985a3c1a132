package server

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/component-base/metrics/legacyregistry"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metricsHandler serves what the generic API server, the controllers and the
// embedded etcd measure, and what is measured of one server. Each has a registry
// of its own in this process.
func metricsHandler(own ...prometheus.Gatherer) http.Handler {
	// The stock route registers the API server's metrics when it is installed;
	// only that is wanted here.
	routes.DefaultMetrics{}.Install(mux.NewPathRecorderMux("unused"))
	gatherer := append(firstWins(own), legacyregistry.DefaultGatherer, ctrlmetrics.Registry, prometheus.DefaultGatherer)
	return promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// firstWins merges registries. What several of them measure (the Go runtime, for
// one) is taken from the first.
type firstWins []prometheus.Gatherer

// Gather implements prometheus.Gatherer.
func (g firstWins) Gather() ([]*dto.MetricFamily, error) {
	var merged []*dto.MetricFamily
	var errs []error
	seen := map[string]bool{}
	for _, gatherer := range g {
		families, err := gatherer.Gather()
		if err != nil {
			errs = append(errs, err)
		}
		for _, family := range families {
			if !seen[family.GetName()] {
				seen[family.GetName()] = true
				merged = append(merged, family)
			}
		}
	}
	return merged, errors.Join(errs...)
}
