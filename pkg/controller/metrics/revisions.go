package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

// collectTimeout bounds a read from the cache, which answers at once.
const collectTimeout = 5 * time.Second

// omitted is the reason of failing objects that status counts but does not list.
const omitted = "Omitted"

type revisions struct {
	synced func() bool
	reader client.Reader
	clock  clock.PassiveClock

	info, condition, seconds, objects, failing *prometheus.Desc
}

func newRevisions(synced func() bool, reader client.Reader, clock clock.PassiveClock) *revisions {
	return &revisions{
		synced: synced, reader: reader, clock: clock,
		info: catalogue.Desc(catalogue.Info), condition: catalogue.Desc(catalogue.Condition), seconds: catalogue.Desc(catalogue.Seconds),
		objects: catalogue.Desc(catalogue.Objects), failing: catalogue.Desc(catalogue.Failing),
	}
}

// Describe implements prometheus.Collector.
func (c *revisions) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.info, c.condition, c.seconds, c.objects, c.failing} {
		out <- d
	}
}

// Collect implements prometheus.Collector. It sends nothing until the cache has synced, because
// missing revisions would look deleted.
func (c *revisions) Collect(out chan<- prometheus.Metric) {
	if !c.synced() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	var list olmv1alpha1.ClusterExtensionRevisionList
	// The thousands of revisions are only read here, so copies are not needed.
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		out <- prometheus.NewInvalidMetric(c.info, err)
		return
	}
	now := c.clock.Now()
	for i := range list.Items {
		c.revision(out, &list.Items[i], now)
	}
}

func (c *revisions) revision(out chan<- prometheus.Metric, revision *olmv1alpha1.ClusterExtensionRevision, now time.Time) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{revision.Name}, labels...)...)
	}
	extension, _, _ := olm.ChainOf(revision.Name)
	gauge(c.info, 1, extension, strconv.FormatInt(revision.Spec.Revision, 10), lifecycle(revision))
	if atRest(revision) {
		return
	}
	for _, condition := range revision.Status.Conditions {
		status := string(condition.Status)
		gauge(c.condition, 1, condition.Type, status)
		gauge(c.seconds, max(0, now.Sub(condition.LastTransitionTime.Time).Seconds()), condition.Type, status)
	}
	if lifecycle(revision) == string(olmv1alpha1.LifecycleStateArchived) {
		return // its remaining objects are being deleted
	}
	counted, failing := tally(revision.Status.Phases)
	for state, n := range counted {
		gauge(c.objects, float64(n), state)
	}
	for reason, n := range failing {
		gauge(c.failing, float64(n), reason)
	}
}

// tally counts the objects of phases by state, and the failing objects by reason.
func tally(phases []olmv1alpha1.PhaseStatus) (states, failing map[string]int32) {
	states = map[string]int32{"Available": 0, "Unready": 0, "Pending": 0, "Superseded": 0}
	failing = map[string]int32{}
	for _, phase := range phases {
		states["Available"] += phase.Available
		states["Unready"] += phase.Applied - phase.Available
		states["Superseded"] += phase.Superseded
		states["Pending"] += phase.Objects - phase.Applied - phase.Superseded
		for _, failure := range phase.Failing {
			failing[failure.Reason]++
		}
		if phase.FailingOmitted > 0 {
			failing[omitted] += phase.FailingOmitted
		}
	}
	return states, failing
}

// lifecycle returns the lifecycle state of a revision, or Deleting.
func lifecycle(revision *olmv1alpha1.ClusterExtensionRevision) string {
	if !revision.DeletionTimestamp.IsZero() {
		return "Deleting"
	}
	return string(revision.Spec.LifecycleState)
}

// atRest reports whether an archived revision has nothing left to do. It stays not Available, which
// is no problem, and each chain keeps several such revisions.
func atRest(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return lifecycle(revision) == string(olmv1alpha1.LifecycleStateArchived) &&
		meta.IsStatusConditionFalse(revision.Status.Conditions, olmv1alpha1.ConditionProgressing)
}
