package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

type requests struct {
	counter *targetclient.Counter
	total   *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (r *requests) Describe(out chan<- *prometheus.Desc) { out <- r.total }

// Collect implements prometheus.Collector.
func (r *requests) Collect(out chan<- prometheus.Metric) {
	for request, n := range r.counter.Requests() {
		out <- prometheus.MustNewConstMetric(r.total, prometheus.CounterValue, float64(n), request.Verb, string(request.Reason))
	}
}
