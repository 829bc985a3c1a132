package chain

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// timed writes into the next phases of a revision when they began, and when they were first
// available. Times change only when a state changes, so they cause no extra write. Unknown times
// stay empty. Examples are phases that began under an older Penstock, and imported revisions.
//
// A phase that leaves Pending began at the start of the pass, began. A phase that becomes Available
// does so when the pass is judged, at now.
func timed(revision *olmv1alpha1.ClusterExtensionRevision, next []olmv1alpha1.PhaseStatus, began, now time.Time) []olmv1alpha1.PhaseStatus {
	if _, imported := revision.Annotations[olmv1alpha1.RequestedByAnnotation]; imported {
		return next
	}
	before := make(map[string]olmv1alpha1.PhaseStatus, len(revision.Status.Phases))
	for _, phase := range revision.Status.Phases {
		before[phase.Name] = phase
	}
	for i := range next {
		phase := &next[i]
		was, known := before[phase.Name]
		phase.StartedAt, phase.AvailableAt = was.StartedAt, was.AvailableAt
		if phase.StartedAt == nil && phase.State != olmv1alpha1.PhaseStatePending && (!known || was.State == olmv1alpha1.PhaseStatePending) {
			phase.StartedAt = stored(began)
		}
		if phase.AvailableAt == nil && phase.StartedAt != nil && phase.State == olmv1alpha1.PhaseStateAvailable {
			phase.AvailableAt = stored(now)
			if phase.AvailableAt.Before(phase.StartedAt) {
				// Another replica with a faster clock recorded the start.
				phase.AvailableAt = phase.StartedAt.DeepCopy()
			}
		}
	}
	return next
}

// stored returns a time as the API returns it, in whole seconds.
func stored(at time.Time) *metav1.Time {
	t := metav1.NewTime(at).Rfc3339Copy()
	return &t
}
