package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Process are the metrics that each replica exposes, whether or not it leads.
type Process struct {
	// Leading tells whether controllers run here, Full whether the store takes no
	// writes, Degraded whether it is
	// one that must not be served. Both are required.
	Leading, Full, Degraded func() bool
	// Unreadable is how many records of the store cannot be read, by kind. It is
	// required.
	Unreadable func() map[string]int
	// Volume is how many bytes are free where the store is, and must be; ok is false
	// where that is not known. It is required.
	Volume func() (free, reserve uint64, ok bool)
	// Expiries are the times when certificates end, by name; zero times are left
	// out. Skew is by how many seconds our clock is ahead of the host's. Both are
	// required.
	Expiries func() map[string]time.Time
	Skew     func() float64
}

// Describe implements prometheus.Collector.
func (p Process) Describe(out chan<- *prometheus.Desc) {
	out <- desc(nameLeader)
	out <- desc(nameDegraded)
	out <- desc(nameFull)
	out <- desc(nameUnreadable)
	out <- desc(nameVolumeFree)
	out <- desc(nameVolumeReserve)
	out <- desc(nameExpiry)
	out <- desc(nameSkew)
}

// Collect implements prometheus.Collector.
func (p Process) Collect(out chan<- prometheus.Metric) {
	for name, is := range map[string]func() bool{nameLeader: p.Leading, nameDegraded: p.Degraded, nameFull: p.Full} {
		value := 0.0
		if is() {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(desc(name), prometheus.GaugeValue, value)
	}
	for kind, records := range p.Unreadable() {
		out <- prometheus.MustNewConstMetric(desc(nameUnreadable), prometheus.GaugeValue, float64(records), kind)
	}
	if free, reserve, ok := p.Volume(); ok {
		out <- prometheus.MustNewConstMetric(desc(nameVolumeFree), prometheus.GaugeValue, float64(free))
		out <- prometheus.MustNewConstMetric(desc(nameVolumeReserve), prometheus.GaugeValue, float64(reserve))
	}
	for name, end := range p.Expiries() {
		if !end.IsZero() {
			out <- prometheus.MustNewConstMetric(desc(nameExpiry), prometheus.GaugeValue, float64(end.Unix()), name)
		}
	}
	out <- prometheus.MustNewConstMetric(desc(nameSkew), prometheus.GaugeValue, p.Skew())
}
