package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

// Charts holds the known facts of a ChartKind.
type Charts struct {
	// Name is the name of the ChartKind.
	Name string
	// States counts its custom resources by the reason of Progressing; empty before that condition
	// exists.
	States map[string]int
	// Renders counts the renderings of its chart in this term.
	Renders int
}

// AddCharts registers the metrics of ChartKinds for a term. All returns the served ChartKinds.
func AddCharts(registry prometheus.Registerer, all func() []Charts) error {
	if err := registry.Register(charts(all)); err != nil {
		return fmt.Errorf("registering metrics of ChartKinds: %w", err)
	}
	return nil
}

type charts func() []Charts

// Describe implements prometheus.Collector.
func (c charts) Describe(out chan<- *prometheus.Desc) {
	out <- catalogue.Desc(catalogue.ChartResources)
	out <- catalogue.Desc(catalogue.ChartRenders)
}

// Collect implements prometheus.Collector.
func (c charts) Collect(out chan<- prometheus.Metric) {
	for _, of := range c() {
		out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.ChartRenders), prometheus.CounterValue, float64(of.Renders), of.Name)
		for state, count := range of.States {
			out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.ChartResources), prometheus.GaugeValue, float64(count), of.Name, state)
		}
	}
}
