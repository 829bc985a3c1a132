package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

// Templates counts objects by kind and by the state of their image template.
type Templates map[struct{ Kind, State string }]int

// AddTemplates registers the metrics of image templates for a term. The function all returns the
// known templates.
func AddTemplates(registry prometheus.Registerer, all func() Templates) error {
	if err := registry.Register(templates(all)); err != nil {
		return fmt.Errorf("registering metrics of templates of images: %w", err)
	}
	return nil
}

type templates func() Templates

// Describe implements prometheus.Collector.
func (t templates) Describe(out chan<- *prometheus.Desc) {
	out <- catalogue.Desc(catalogue.ImageTemplates)
}

// Collect implements prometheus.Collector.
func (t templates) Collect(out chan<- prometheus.Metric) {
	for of, count := range t() {
		out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.ImageTemplates), prometheus.GaugeValue, float64(count), of.Kind, of.State)
	}
}
