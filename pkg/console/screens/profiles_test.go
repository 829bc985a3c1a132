package screens

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// TestProfileSignal: a profile that is not active looks the same whatever its plan waits for; the
// plan has a signal of its own.
func TestProfileSignal(t *testing.T) {
	for name, tc := range map[string]struct {
		status v1alpha1.ConfigurationProfileStatus
		want   Signal
	}{
		"active":         {v1alpha1.ConfigurationProfileStatus{State: v1alpha1.ProfileActive}, Healthy},
		"drifted":        {v1alpha1.ConfigurationProfileStatus{State: v1alpha1.ProfileDrifted, PlanPhase: v1alpha1.PhaseReviewRequired}, NeedsAttention},
		"inactive":       {v1alpha1.ConfigurationProfileStatus{State: v1alpha1.ProfileInactive}, Stopped},
		"to be approved": {v1alpha1.ConfigurationProfileStatus{State: v1alpha1.ProfileInactive, PlanPhase: v1alpha1.PhaseReviewRequired}, Stopped},
	} {
		if got := profileSignal(&tc.status); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
