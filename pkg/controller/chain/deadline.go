package chain

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// deadline returns the time when a rollout in progress becomes Stalled, if it has a limit. During a
// freeze or another hold by Penstock, Progressing is not True. Afterwards the full time begins
// again.
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

// overdue reports whether a rollout in progress has missed its deadline. A complete revision that
// only has to stay available is not overdue.
func overdue(revision *olmv1alpha1.ClusterExtensionRevision, now time.Time) bool {
	at, limited := deadline(revision)
	return limited && !soaking(revision) && !now.Before(at) &&
		meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionProgressing)
}

// soaking reports whether a revision lacks only time and answers of MetricChecks.
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

// unanswered reports whether the MetricChecks of a revision have not answered before their
// deadline. That is no failure: the revision is not rolled back.
func unanswered(revision *olmv1alpha1.ClusterExtensionRevision, now time.Time) bool {
	at, limited := answerDeadline(revision)
	return limited && !now.Before(at)
}

// answerDeadline returns the deadline for the answers of MetricChecks, if there is one.
func answerDeadline(revision *olmv1alpha1.ClusterExtensionRevision) (time.Time, bool) {
	end, available := soaked(revision, revision.Status.Conditions)
	return end.Add(time.Duration(revision.Spec.ProgressDeadlineMinutes) * time.Minute),
		available && revision.Spec.ProgressDeadlineMinutes > 0 && len(revision.Spec.MetricChecks) > 0 && soaking(revision) && !metricFailed(revision.Status.Conditions)
}

// soak returns the time until which a revision must stay Available, if it lacks nothing else to
// succeed. The time has whole seconds, like all times of conditions.
func soak(revision *olmv1alpha1.ClusterExtensionRevision) (time.Time, bool) {
	succeeded := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded)
	if succeeded == nil || succeeded.Status == metav1.ConditionTrue || succeeded.Reason != reasonSoaking {
		return time.Time{}, false
	}
	return soaked(revision, revision.Status.Conditions)
}

// soaked returns the time when an Available revision has been Available for its success delay.
func soaked(revision *olmv1alpha1.ClusterExtensionRevision, conditions []metav1.Condition) (time.Time, bool) {
	available := meta.FindStatusCondition(conditions, olmv1alpha1.ConditionAvailable)
	if available == nil || available.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return available.LastTransitionTime.Add(time.Duration(revision.Spec.SuccessDelaySeconds) * time.Second), true
}

// next returns the delay of the next pass, if no event arrives earlier.
func (s *scope) next() time.Duration {
	after := s.report.RequeueAfter
	if s.stale {
		// The cache will report the change, but the pass does not depend on that.
		after = staleRetry
	}
	sooner := func(at time.Time) {
		if !at.After(s.judged) {
			return // this pass has handled it
		}
		// A deadline that passed during this pass is handled at once.
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
