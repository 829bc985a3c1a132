package webhook

import "k8s.io/component-base/metrics"

// decision about one review.
type decision string

const (
	allowed decision = "allowed"
	denied  decision = "denied"
	// malformed: the request was not a review, and the answer 4xx.
	malformed decision = "malformed"
	// busy: the review was large, and other large reviews used the memory.
	busy decision = "busy"
)

// Metrics count reviews. Nil counts nothing.
type Metrics struct {
	reviews *metrics.CounterVec
}

// NewMetrics registers the metrics. Call it once per registry.
func NewMetrics(registry metrics.KubeRegistry) *Metrics {
	reviews := metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "penstock_webhook_reviews_total",
		Help:           "Admission reviews of the host's kinds, by webhook and decision (allowed, denied, malformed, busy).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"webhook", "decision"})
	registry.MustRegister(reviews)
	return &Metrics{reviews: reviews}
}

func (m *Metrics) decided(webhook string, d decision) {
	if m != nil {
		m.reviews.WithLabelValues(webhook, string(d)).Inc()
	}
}
