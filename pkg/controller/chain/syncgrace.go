package chain

import (
	"time"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// syncGrace is the time for the first answers of watches. After that time, status reports the
// missing answers.
const syncGrace = time.Minute

// inSyncGrace reports whether status stays unchanged while new watches have not answered. Nothing
// is known about a revision after a start of the process. That must not make it unavailable for a
// moment. The grace ends after syncGrace, with a known failure of an object, and with a new
// generation.
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

// syncing reports whether no watch has failed, so that only answers are missing.
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
