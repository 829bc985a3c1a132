package metrics

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	catalogue "github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// history counts the transitions of conditions that the watch reports. Of several transitions while
// no watch is open, it sees only the last.
type history struct {
	durations *prometheus.HistogramVec
	total     *prometheus.Desc
	gone      func(types.UID)

	mu sync.Mutex
	// transitions holds the transitions by the name of the revision. There are few for each
	// revision.
	transitions map[string][]transition
}

// transition counts how often a condition changed to a status.
type transition struct {
	condition, status string
	count             float64
}

func newHistory(gone func(types.UID)) *history {
	return &history{
		// The buckets range from seconds, the resolution of transition times, to a day.
		durations:   catalogue.Histogram(catalogue.Durations, []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600}),
		total:       catalogue.Desc(catalogue.Transitions),
		gone:        gone,
		transitions: map[string][]transition{},
	}
}

var _ toolscache.ResourceEventHandler = &history{}

// OnAdd implements toolscache.ResourceEventHandler. It ignores the initial list, because those
// transitions happened earlier.
func (h *history) OnAdd(object any, initial bool) {
	if revision, ok := object.(*olmv1alpha1.ClusterExtensionRevision); ok && !initial {
		h.compare(revision.Name, nil, revision.Status.Conditions)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (h *history) OnUpdate(before, after any) {
	old, ok := before.(*olmv1alpha1.ClusterExtensionRevision)
	revision, also := after.(*olmv1alpha1.ClusterExtensionRevision)
	if !ok || !also {
		return
	}
	if old.UID != revision.UID {
		// The revision was deleted and created again while no watch was open.
		h.OnDelete(old)
		h.OnAdd(revision, false)
		return
	}
	h.compare(revision.Name, old.Status.Conditions, revision.Status.Conditions)
}

// OnDelete implements toolscache.ResourceEventHandler.
func (h *history) OnDelete(object any) {
	revision, ok := objectwatch.Told[*olmv1alpha1.ClusterExtensionRevision](object)
	if !ok {
		return
	}
	h.mu.Lock()
	delete(h.transitions, revision.Name)
	h.mu.Unlock()
	h.gone(revision.UID)
}

func (h *history) compare(name string, before, after []metav1.Condition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, now := range after {
		old := meta.FindStatusCondition(before, now.Type)
		if old != nil && old.Status == now.Status {
			continue
		}
		h.count(name, now)
		if old != nil {
			lasted := now.LastTransitionTime.Sub(old.LastTransitionTime.Time)
			h.durations.WithLabelValues(old.Type, string(old.Status)).Observe(max(0, lasted.Seconds()))
		}
	}
}

// count counts the change of a condition to its present status. The caller holds the lock.
func (h *history) count(name string, now metav1.Condition) {
	counts := h.transitions[name]
	at := slices.IndexFunc(counts, func(t transition) bool { return t.condition == now.Type && t.status == string(now.Status) })
	if at < 0 {
		// Thousands of revisions have such slices, so their capacity is exact.
		at, counts = len(counts), slices.Clip(append(slices.Clip(counts), transition{condition: now.Type, status: string(now.Status)}))
		h.transitions[name] = counts
	}
	counts[at].count++
}

// Describe implements prometheus.Collector.
func (h *history) Describe(out chan<- *prometheus.Desc) { out <- h.total }

// Collect implements prometheus.Collector.
func (h *history) Collect(out chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, counts := range h.transitions {
		for _, t := range counts {
			out <- prometheus.MustNewConstMetric(h.total, prometheus.CounterValue, t.count, name, t.condition, t.status)
		}
	}
}
