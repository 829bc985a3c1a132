package screens

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// TestProfileSignal: the signal of an inactive profile does not depend on its plan. The plan has
// its own signal.
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
