package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

// Process are the metrics that each replica exposes, whether or not it leads.
type Process struct {
	// Leading reports whether controllers run here. Full reports whether the store takes no writes.
	// Degraded reports whether the store must not be served. All are required.
	Leading, Full, Degraded func() bool
	// Unreadable returns the number of unreadable records of the store, by kind. It is required.
	Unreadable func() map[string]int
	// Volume returns the free bytes of the store's volume, and the bytes that must stay free. ok is
	// false if they are unknown. It is required.
	Volume func() (free, reserve uint64, ok bool)
	// Refusals returns the number of creates that exceeded a share of the store, by share. It is
	// required.
	Refusals func() map[string]int
	// Expiries returns when certificates expire, by name; zero times are left out. Skew returns by
	// how many seconds our clock is ahead of the host's. Both are required.
	Expiries func() map[string]time.Time
	Skew     func() float64
}

// Describe implements prometheus.Collector.
func (p Process) Describe(out chan<- *prometheus.Desc) {
	out <- catalogue.Desc(catalogue.Leader)
	out <- catalogue.Desc(catalogue.Degraded)
	out <- catalogue.Desc(catalogue.Full)
	out <- catalogue.Desc(catalogue.Unreadable)
	out <- catalogue.Desc(catalogue.ShareRefusals)
	out <- catalogue.Desc(catalogue.VolumeFree)
	out <- catalogue.Desc(catalogue.VolumeReserve)
	out <- catalogue.Desc(catalogue.Expiry)
	out <- catalogue.Desc(catalogue.Skew)
}

// Collect implements prometheus.Collector.
func (p Process) Collect(out chan<- prometheus.Metric) {
	for name, is := range map[string]func() bool{catalogue.Leader: p.Leading, catalogue.Degraded: p.Degraded, catalogue.Full: p.Full} {
		value := 0.0
		if is() {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(catalogue.Desc(name), prometheus.GaugeValue, value)
	}
	for kind, records := range p.Unreadable() {
		out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.Unreadable), prometheus.GaugeValue, float64(records), kind)
	}
	for of, count := range p.Refusals() {
		out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.ShareRefusals), prometheus.CounterValue, float64(count), of)
	}
	if free, reserve, ok := p.Volume(); ok {
		out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.VolumeFree), prometheus.GaugeValue, float64(free))
		out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.VolumeReserve), prometheus.GaugeValue, float64(reserve))
	}
	for name, end := range p.Expiries() {
		if !end.IsZero() {
			out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.Expiry), prometheus.GaugeValue, float64(end.Unix()), name)
		}
	}
	out <- prometheus.MustNewConstMetric(catalogue.Desc(catalogue.Skew), prometheus.GaugeValue, p.Skew())
}
