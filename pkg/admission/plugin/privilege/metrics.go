package privilege

import "k8s.io/component-base/metrics"

// decision about one request.
type decision string

const (
	// allowed: the requester has all rights.
	allowed decision = "allowed"
	// bypassed: the requester has the right to bypass the check.
	bypassed decision = "bypassed"
	// denied: the requester lacks a right.
	denied decision = "denied"
	// failed: the check had no result, and the request was refused.
	failed decision = "failed"
	// exempt: the request is Penstock's own.
	exempt decision = "exempt"
)

// Metrics count the decisions of the plugin.
type Metrics struct {
	decisions *metrics.CounterVec
	questions metrics.CounterMetric
}

// NewMetrics registers the metrics. Call it once per registry.
func NewMetrics(registry metrics.KubeRegistry) *Metrics {
	decisions := metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "penstock_privilege_decisions_total",
		Help:           "Changes of revisions whose requester was checked, by kind of change and decision (allowed, bypassed, denied, failed, exempt).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"change", "decision"})
	questions := metrics.NewCounter(&metrics.CounterOpts{
		Name:           "penstock_privilege_questions_total",
		Help:           "Access reviews that the host cluster answered for these checks.",
		StabilityLevel: metrics.ALPHA,
	})
	registry.MustRegister(decisions, questions)
	return &Metrics{decisions: decisions, questions: questions}
}

func (m *Metrics) decided(k kind, d decision) {
	if m != nil {
		m.decisions.WithLabelValues(string(k), string(d)).Inc()
	}
}

func (m *Metrics) asked(questions int) {
	if m != nil {
		m.questions.Add(float64(questions))
	}
}
