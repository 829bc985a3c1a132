package chain

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/metriccheck"
	rule "github.com/penstock-project/penstock/pkg/metriccheck"
)

// Metrics runs MetricChecks on rollouts. The engine does not know MetricChecks.
type Metrics interface {
	// Measured returns the last measurements. kept are the stored measurements.
	Measured(of metriccheck.Subject, kept []olmv1alpha1.MetricMeasurement) []olmv1alpha1.MetricMeasurement
	// Ask starts the queries that are due. It returns the time of the next query; zero for none.
	Ask(of metriccheck.Subject, measured []olmv1alpha1.MetricMeasurement) time.Time
	// Changed receives an element when MetricChecks have changed.
	Changed() <-chan event.TypedGenericEvent[string]
}

// measured returns the measurements of a revision. They are updated while they decide its success.
func (s *scope) measured(revision *olmv1alpha1.ClusterExtensionRevision) []olmv1alpha1.MetricMeasurement {
	subject, judged := judgedByMetrics(revision)
	if !judged {
		return revision.Status.MetricChecks
	}
	return s.Metrics.Measured(subject, revision.Status.MetricChecks)
}

// judgedByMetrics returns the subject for the MetricChecks of a revision that lacks only time and
// their answers.
func judgedByMetrics(revision *olmv1alpha1.ClusterExtensionRevision) (metriccheck.Subject, bool) {
	available := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionAvailable)
	if len(revision.Spec.MetricChecks) == 0 || !soaking(revision) || available == nil || available.Status != metav1.ConditionTrue {
		return metriccheck.Subject{}, false
	}
	extension, _, _ := olm.ChainOf(revision.Name)
	return metriccheck.Subject{
		Extension: extension, Revision: revision.UID, Namespaces: workloadNamespaces(revision),
		Since: available.LastTransitionTime.Time, Checks: revision.Spec.MetricChecks,
	}, true
}

// workloadNamespaces returns the namespaces of objects in the group apps, or else the namespaces of
// all objects.
func workloadNamespaces(revision *olmv1alpha1.ClusterExtensionRevision) []string {
	var workloads, all []string
	for _, phase := range revision.Spec.Phases {
		for _, object := range phase.Objects {
			if object.Namespace == "" {
				continue
			}
			all = append(all, object.Namespace)
			if strings.HasPrefix(object.APIVersion, "apps/") {
				workloads = append(workloads, object.Namespace)
			}
		}
	}
	if len(workloads) == 0 {
		workloads = all
	}
	slices.Sort(workloads)
	return slices.Compact(workloads)
}

// metricVerdict judges the measurements of a revision whose objects must stay Available at least
// until end.
func metricVerdict(revision *olmv1alpha1.ClusterExtensionRevision, measured []olmv1alpha1.MetricMeasurement, end time.Time) (olmv1alpha1.MetricVerdict, string) {
	since := end.Add(-time.Duration(revision.Spec.SuccessDelaySeconds) * time.Second)
	return rule.Judge(revision.Spec.MetricChecks, measured, since, end)
}

func metricFailed(conditions []metav1.Condition) bool {
	succeeded := meta.FindStatusCondition(conditions, olmv1alpha1.ConditionSucceeded)
	return succeeded != nil && succeeded.Status == metav1.ConditionFalse && succeeded.Reason == reasonMetricFailed
}
