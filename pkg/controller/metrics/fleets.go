package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

// Fleet holds the known facts of a ClusterExtensionSet's newest rollout.
type Fleet struct {
	// Set is the name of the ClusterExtensionSet.
	Set string
	// States counts the clusters by state.
	States map[string]int
	// Waits lists the distinct reasons of the rollout to wait.
	Waits []string
}

// AddFleets registers the metrics of ClusterExtensionSets for a term. The function all returns the
// known sets.
func AddFleets(registry prometheus.Registerer, all func() []Fleet) error {
	if err := registry.Register(fleets(all)); err != nil {
		return fmt.Errorf("registering metrics of ClusterExtensionSets: %w", err)
	}
	return nil
}

type fleets func() []Fleet

// Describe implements prometheus.Collector.
func (f fleets) Describe(out chan<- *prometheus.Desc) {
	out <- catalogue.Desc(catalogue.FleetClusters)
	out <- catalogue.Desc(catalogue.FleetWaits)
}

// Collect implements prometheus.Collector.
func (f fleets) Collect(out chan<- prometheus.Metric) {
	for _, of := range f() {
		for state, count := range of.States {
			out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.FleetClusters), prometheus.GaugeValue, float64(count), of.Set, state)
		}
		for _, reason := range of.Waits {
			out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.FleetWaits), prometheus.GaugeValue, 1, of.Set, reason)
		}
	}
}
