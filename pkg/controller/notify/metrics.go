package notify

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-project/penstock/pkg/metrics"
)

type measured struct{ *Controller }

// Register registers the metrics for a term.
func (c *Controller) Register(registry prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{c.sent, measured{c}} {
		if err := registry.Register(collector); err != nil {
			return fmt.Errorf("registering metrics of notifications: %w", err)
		}
	}
	return nil
}

// Describe implements prometheus.Collector.
func (measured) Describe(to chan<- *prometheus.Desc) {
	to <- metrics.Desc(metrics.NotificationsLeft)
	to <- metrics.Desc(metrics.NotificationsFailed)
}

// Collect implements prometheus.Collector.
func (m measured) Collect(to chan<- prometheus.Metric) {
	for _, one := range m.Pending() {
		failing := 0.0
		if !one.FailingSince.IsZero() {
			failing = m.Clock.Now().Sub(one.FailingSince).Seconds()
		}
		to <- prometheus.MustNewConstMetric(metrics.Desc(metrics.NotificationsLeft), prometheus.GaugeValue, float64(one.Entries), one.Receiver)
		to <- prometheus.MustNewConstMetric(metrics.Desc(metrics.NotificationsFailed), prometheus.GaugeValue, failing, one.Receiver)
	}
}

func (c *Controller) count(receiver string, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	c.sent.WithLabelValues(receiver, result).Inc()
}
