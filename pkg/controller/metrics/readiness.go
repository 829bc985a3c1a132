package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

const (
	// readinessFresh is the age of an answer after which the next scrape starts a new computation.
	readinessFresh = 15 * time.Minute
	// readinessRetry is the delay before a failed computation is repeated.
	readinessRetry   = time.Minute
	readinessTimeout = time.Minute
)

// Readiness returns the obstacles to an upgrade to the next minor version.
type Readiness func(ctx context.Context) (*olmv1alpha1.UpgradeReadiness, error)

// readiness counts findings. A scrape returns the last answer. If that answer is old, the scrape
// also starts a new computation in the background. Without scrapes nothing is computed.
type readiness struct {
	// ask computes an answer; it stops at the end of the term.
	ask   func() (*olmv1alpha1.UpgradeReadiness, error)
	clock clock.PassiveClock
	found *prometheus.Desc

	mu     sync.Mutex
	asking bool
	asked  time.Time
	counts map[olmv1alpha1.UpgradeSeverity]int
}

// AddReadiness registers the metric of upgrade readiness for a term, which ends with ctx.
func AddReadiness(ctx context.Context, registry prometheus.Registerer, clock clock.PassiveClock, read Readiness) error {
	r := &readiness{clock: clock, found: catalogue.Desc(catalogue.UpgradeFindings)}
	r.ask = func() (*olmv1alpha1.UpgradeReadiness, error) {
		ctx, cancel := context.WithTimeout(ctx, readinessTimeout)
		defer cancel()
		answer, err := read(ctx)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Upgrade readiness is not known")
		}
		return answer, err
	}
	if err := registry.Register(r); err != nil {
		return fmt.Errorf("registering the metric of upgrade readiness: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (r *readiness) Describe(out chan<- *prometheus.Desc) { out <- r.found }

// Collect implements prometheus.Collector. It sends nothing before the first answer, and after a
// failure.
func (r *readiness) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asking && (r.asked.IsZero() || r.clock.Since(r.asked) >= readinessFresh) {
		r.asking = true
		go r.refresh()
	}
	for severity, n := range r.counts {
		out <- prometheus.MustNewConstMetric(r.found, prometheus.GaugeValue, float64(n), string(severity))
	}
}

func (r *readiness) refresh() {
	answer, err := r.ask()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking, r.asked, r.counts = false, r.clock.Now(), nil
	if err != nil {
		r.asked = r.asked.Add(readinessRetry - readinessFresh)
		return
	}
	r.counts = map[olmv1alpha1.UpgradeSeverity]int{
		olmv1alpha1.UpgradeBlocks: 0, olmv1alpha1.UpgradeBreaksRollback: 0, olmv1alpha1.UpgradeActBefore: 0, olmv1alpha1.UpgradeLook: 0,
	}
	for i := range answer.Findings {
		if found := &answer.Findings[i]; found.Acknowledged == nil {
			r.counts[found.Severity]++
		}
	}
}
