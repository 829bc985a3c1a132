package installlevels

import "k8s.io/component-base/metrics"

// decision about one request.
type decision string

const (
	allowed decision = "allowed"
	denied  decision = "denied"
	// failed: the check had no result, and the request was refused.
	failed decision = "failed"
)

// Metrics count the decisions of the plugin.
type Metrics struct{ decisions *metrics.CounterVec }

// NewMetrics registers the metrics. Call it once per registry.
func NewMetrics(registry metrics.KubeRegistry) *Metrics {
	decisions := metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "penstock_install_levels_decisions_total",
		Help:           "New revisions whose install levels were checked, by decision (allowed, denied, failed).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"decision"})
	registry.MustRegister(decisions)
	return &Metrics{decisions: decisions}
}

func (m *Metrics) decided(d decision) {
	if m != nil {
		m.decisions.WithLabelValues(string(d)).Inc()
	}
}
