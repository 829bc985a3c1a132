// Package metrics serves the metrics of the generic API server, the controllers of the term, the
// embedded etcd, and the replica.
package metrics

import (
	"errors"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/component-base/metrics/legacyregistry"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/penstock-project/penstock/pkg/server/etcd"
)

// Handler serves the metrics of the generic API server, and of the given registries of one server
// and its embedded etcd.
func Handler(own ...prometheus.Gatherer) http.Handler {
	// Installing the stock route registers the API server's metrics. The route itself is not used.
	routes.DefaultMetrics{}.Install(mux.NewPathRecorderMux("unused"))
	gatherer := append(FirstWins(own), legacyregistry.DefaultGatherer, ctrlmetrics.Registry, notEtcd{prometheus.DefaultGatherer})
	return promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// notEtcd removes the metrics of etcd's library. etcd runs in another process, so here these
// metrics would show a database of 0 bytes.
type notEtcd struct{ prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (g notEtcd) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Gatherer.Gather()
	families = slices.DeleteFunc(families, func(family *dto.MetricFamily) bool { return etcd.Measures(family.GetName()) })
	return families, err
}

// FirstWins merges registries. If several have the same metric, such as the metrics of the Go
// runtime, it takes the metric of the first.
type FirstWins []prometheus.Gatherer

// Gather implements prometheus.Gatherer.
func (g FirstWins) Gather() ([]*dto.MetricFamily, error) {
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
