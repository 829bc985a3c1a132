package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

// PlanOptions configure the metrics of plans in one term. All fields are required.
type PlanOptions struct {
	// Registry receives the metrics; it belongs to the term.
	Registry prometheus.Registerer
	// Informer watches plans, and Reader reads them from its cache.
	Informer Informer
	Reader   client.Reader
	Clock    clock.PassiveClock
}

// AddPlans registers the metrics of plans for a term.
func AddPlans(o PlanOptions) error {
	entries := &planEntries{total: catalogue.Desc(catalogue.PlanEntries), entries: map[planEntry]float64{}}
	if _, err := o.Informer.AddEventHandler(entries); err != nil {
		return fmt.Errorf("watching plans for metrics: %w", err)
	}
	all := &plans{
		synced: o.Informer.HasSynced, reader: o.Reader, clock: o.Clock,
		phase: catalogue.Desc(catalogue.PlanPhase), condition: catalogue.Desc(catalogue.PlanCondition), items: catalogue.Desc(catalogue.PlanItems), review: catalogue.Desc(catalogue.PlanReview),
	}
	for _, collector := range []prometheus.Collector{all, entries} {
		if err := o.Registry.Register(collector); err != nil {
			return fmt.Errorf("registering metrics of plans: %w", err)
		}
	}
	return nil
}

// plans exposes the status of plans, read at each scrape. So a new term also reports a drifted
// plan, although no status is written then.
type plans struct {
	synced func() bool
	reader client.Reader
	clock  clock.PassiveClock

	phase, condition, items, review *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *plans) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.phase, c.condition, c.items, c.review} {
		out <- d
	}
}

// Collect implements prometheus.Collector. It sends nothing until the cache has synced.
func (c *plans) Collect(out chan<- prometheus.Metric) {
	if !c.synced() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	var list hcov1alpha1.ConfigurationPlanList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		out <- prometheus.NewInvalidMetric(c.phase, err)
		return
	}
	now := c.clock.Now()
	for i := range list.Items {
		c.plan(out, &list.Items[i], now)
	}
}

func (c *plans) plan(out chan<- prometheus.Metric, plan *hcov1alpha1.ConfigurationPlan, now time.Time) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{plan.Name, string(plan.Spec.Profile)}, labels...)...)
	}
	status := plan.Status
	if status.Phase == "" {
		status.Phase = hcov1alpha1.PhasePending
	}
	gauge(c.phase, 1, string(status.Phase))
	for _, condition := range status.Conditions {
		gauge(c.condition, 1, condition.Type, string(condition.Status))
	}
	states := map[hcov1alpha1.ItemState]int{}
	for _, item := range status.Items {
		states[item.State]++
	}
	for state, n := range states {
		gauge(c.items, float64(n), string(state))
	}
	waiting := 0.0
	if status.Phase == hcov1alpha1.PhaseReviewRequired && status.DraftedAt != nil {
		waiting = max(0, now.Sub(status.DraftedAt.Time).Seconds())
	}
	gauge(c.review, waiting)
}

// planEntries counts how often plans entered each phase, as the watch reports it. If a plan enters
// several phases in one pass, only the last is counted.
type planEntries struct {
	total *prometheus.Desc

	mu      sync.Mutex
	entries map[planEntry]float64
}

// planEntry is a phase of plans of a profile. It has no plan name, because names are many and
// short-lived.
type planEntry struct {
	profile hcov1alpha1.ProfileName
	phase   hcov1alpha1.Phase
}

var _ toolscache.ResourceEventHandler = &planEntries{}

// OnAdd implements toolscache.ResourceEventHandler. It ignores the initial list, because those
// plans entered their phase earlier.
func (e *planEntries) OnAdd(object any, initial bool) {
	if plan, ok := object.(*hcov1alpha1.ConfigurationPlan); ok && !initial {
		e.count("", plan)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (e *planEntries) OnUpdate(before, after any) {
	old, ok := before.(*hcov1alpha1.ConfigurationPlan)
	plan, also := after.(*hcov1alpha1.ConfigurationPlan)
	switch {
	case !ok || !also:
	case old.UID != plan.UID:
		e.count("", plan) // deleted and created again while no watch was open
	default:
		e.count(old.Status.Phase, plan)
	}
}

// OnDelete implements toolscache.ResourceEventHandler. Counters stay.
func (e *planEntries) OnDelete(any) {}

func (e *planEntries) count(before hcov1alpha1.Phase, plan *hcov1alpha1.ConfigurationPlan) {
	if plan.Status.Phase == "" || plan.Status.Phase == before {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.entries[planEntry{plan.Spec.Profile, plan.Status.Phase}]++
}

// Describe implements prometheus.Collector.
func (e *planEntries) Describe(out chan<- *prometheus.Desc) { out <- e.total }

// Collect implements prometheus.Collector.
func (e *planEntries) Collect(out chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for entry, n := range e.entries {
		out <- prometheus.MustNewConstMetric(e.total, prometheus.CounterValue, n, string(entry.profile), string(entry.phase))
	}
}
