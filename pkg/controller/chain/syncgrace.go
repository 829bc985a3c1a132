package chain

import (
	"time"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// syncGrace is the time for the first answers of watches. After it status says that they are
// missing.
const syncGrace = time.Minute

// inSyncGrace is true for a revision whose status speaks of its present generation, while
// watches that were just opened have not answered: after a start of this process
// nothing is known of a healthy revision, which is no reason to call it unavailable
// for a moment. An object that is known to be wrong ends that, and so does time.
func (s *scope) inSyncGrace(revision *olmv1alpha1.ClusterExtensionRevision, layer *rollout.LayerReport) bool {
	known := s.known[revision.UID]
	if layer == nil || !layer.Unknown || !syncing(layer) {
		known.unknownSince = time.Time{}
		return false
	}
	now := s.Clock.Now()
	if known.unknownSince.IsZero() {
		known.unknownSince = now
	}
	return revision.Status.ObservedGeneration == revision.Generation && now.Sub(known.unknownSince) < syncGrace
}

// syncing is true when no watch has told why it does not answer.
func syncing(layer *rollout.LayerReport) bool {
	for _, phase := range layer.Phases {
		for _, failure := range phase.Failures {
			if failure.Reason != rollout.ReasonWaiting && failure.Reason != rollout.ReasonProbe {
				return false
			}
		}
	}
	return true
}
