package chain

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// deadline returns when a rollout that goes on is Stalled, if ever.
// In a freeze, and whenever else Penstock itself holds it back, Progressing is not True:
// the time of the deadline begins anew afterwards.
func deadline(revision *olmv1alpha1.ClusterExtensionRevision) (time.Time, bool) {
	minutes := revision.Spec.ProgressDeadlineMinutes
	if minutes <= 0 {
		return time.Time{}, false
	}
	began := revision.CreationTimestamp.Time
	if c := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionProgressing); c != nil && c.Status == metav1.ConditionTrue {
		began = c.LastTransitionTime.Time
	}
	return began.Add(time.Duration(minutes) * time.Minute), true
}

// overdue is true for a rollout that goes on behind its deadline. One that is
// complete, and only has to stay so, is not judged.
func overdue(revision *olmv1alpha1.ClusterExtensionRevision, now time.Time) bool {
	at, limited := deadline(revision)
	return limited && !soaking(revision) && !now.Before(at) &&
		meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionProgressing)
}

// soaking is true for a revision that lacks nothing but time and answers of MetricChecks.
func soaking(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	succeeded := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded)
	if succeeded == nil || succeeded.Status == metav1.ConditionTrue {
		return false
	}
	switch succeeded.Reason {
	case reasonSoaking, reasonMetricUnknown, reasonMetricFailed:
		return true
	}
	return false
}

// unanswered is true for a revision that has lacked an answer of its MetricChecks for as long as a
// rollout may take. That is no failure: it is not rolled back.
func unanswered(revision *olmv1alpha1.ClusterExtensionRevision, now time.Time) bool {
	at, limited := answerDeadline(revision)
	return limited && !now.Before(at)
}

// answerDeadline returns until when MetricChecks have to answer, if they have to.
func answerDeadline(revision *olmv1alpha1.ClusterExtensionRevision) (time.Time, bool) {
	end, available := soaked(revision, revision.Status.Conditions)
	return end.Add(time.Duration(revision.Spec.ProgressDeadlineMinutes) * time.Minute),
		available && revision.Spec.ProgressDeadlineMinutes > 0 && len(revision.Spec.MetricChecks) > 0 && soaking(revision) && !metricFailed(revision.Status.Conditions)
}

// soak returns until when a revision has to stay Available to succeed, if that is
// all that it lacks. As all times of conditions it is to the second.
func soak(revision *olmv1alpha1.ClusterExtensionRevision) (time.Time, bool) {
	succeeded := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded)
	if succeeded == nil || succeeded.Status == metav1.ConditionTrue || succeeded.Reason != reasonSoaking {
		return time.Time{}, false
	}
	return soaked(revision, revision.Status.Conditions)
}

// soaked returns when a revision that is Available has been so for long enough.
func soaked(revision *olmv1alpha1.ClusterExtensionRevision, conditions []metav1.Condition) (time.Time, bool) {
	available := meta.FindStatusCondition(conditions, olmv1alpha1.ConditionAvailable)
	if available == nil || available.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return available.LastTransitionTime.Add(time.Duration(revision.Spec.SuccessDelaySeconds) * time.Second), true
}

// next returns the wait before the next pass without an event.
func (s *scope) next() time.Duration {
	after := s.report.RequeueAfter
	if s.stale {
		// The event of the change comes through a cache; do not depend on it.
		after = staleRetry
	}
	sooner := func(at time.Time) {
		if !at.After(s.judged) {
			return // this pass has seen it
		}
		// A deadline that came during the pass is looked at at once.
		if left := max(at.Sub(s.Clock.Now()), 1); after == 0 || left < after {
			after = left
		}
	}
	for _, revision := range s.layers {
		at, limited := deadline(revision)
		if subject, judged := judgedByMetrics(revision); judged {
			if at := s.Metrics.Ask(subject, revision.Status.MetricChecks); !at.IsZero() {
				sooner(at)
			}
			if at, limited := answerDeadline(revision); limited {
				sooner(at)
			}
		}
		if end, is := soak(revision); is {
			sooner(end)
		} else if limited && !soaking(revision) && meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionProgressing) {
			sooner(at)
		}
	}
	if leading := s.leading(); leading >= 0 && leading < len(s.layers) {
		if until := driftReportedUntil(s.layers[leading], s.judged); !until.IsZero() {
			sooner(until)
		}
	}
	if failed := s.failed(); failed != nil {
		sooner(s.known[failed.UID].again)
	}
	return after
}
