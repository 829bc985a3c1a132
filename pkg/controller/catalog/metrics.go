package catalog

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-project/penstock/pkg/metrics"
)

// most is the largest number of catalogs with their own metric series.
const most = 100

var _ prometheus.Collector = &Controller{}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(out chan<- *prometheus.Desc) {
	for _, name := range []string{metrics.CatalogUnpacked, metrics.CatalogPulled, metrics.CatalogPulls, metrics.CatalogPackages, metrics.CatalogBytes} {
		out <- metrics.Desc(name)
	}
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := 0
	for name, k := range c.known {
		if told++; told > most {
			return
		}
		if k.ref != "" {
			out <- prometheus.MustNewConstMetric(metrics.Desc(metrics.CatalogUnpacked), prometheus.GaugeValue, float64(k.unpacked.Unix()), name)
		}
		if k.succeeded+k.failed > 0 {
			worked := 1.0
			if k.err != nil {
				worked = 0
			}
			out <- prometheus.MustNewConstMetric(metrics.Desc(metrics.CatalogPulled), prometheus.GaugeValue, worked, name)
		}
		out <- prometheus.MustNewConstMetric(metrics.Desc(metrics.CatalogPulls), prometheus.CounterValue, float64(k.succeeded), name, "success")
		out <- prometheus.MustNewConstMetric(metrics.Desc(metrics.CatalogPulls), prometheus.CounterValue, float64(k.failed), name, "failure")
		if k.index != nil {
			out <- prometheus.MustNewConstMetric(metrics.Desc(metrics.CatalogPackages), prometheus.GaugeValue, float64(len(k.index.Packages())), name)
		}
		if k.content != nil {
			out <- prometheus.MustNewConstMetric(metrics.Desc(metrics.CatalogBytes), prometheus.GaugeValue, float64(k.content.Size()), name)
		}
	}
}
