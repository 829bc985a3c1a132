package signals

import "github.com/prometheus/client_golang/prometheus"

// Process are the metrics that each replica exposes, whether or not it leads.
type Process struct {
	// Leading tells whether controllers run here, Degraded whether the store is
	// one that must not be served. Both are required.
	Leading, Degraded func() bool
}

// Describe implements prometheus.Collector.
func (p Process) Describe(out chan<- *prometheus.Desc) {
	out <- desc(nameLeader)
	out <- desc(nameDegraded)
}

// Collect implements prometheus.Collector.
func (p Process) Collect(out chan<- prometheus.Metric) {
	for name, is := range map[string]func() bool{nameLeader: p.Leading, nameDegraded: p.Degraded} {
		value := 0.0
		if is() {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(desc(name), prometheus.GaugeValue, value)
	}
}
