package verbs

import (
	"strings"
	"testing"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

func TestFarewellToPlans(t *testing.T) {
	if got := farewellToPlans(nil); got != "" {
		t.Errorf("of no plan it says %q", got)
	}
	plans := make([]hcov1alpha1.ConfigurationPlan, 2)
	plans[0].Name, plans[1].Name = "rebalance", "tune"
	if got := farewellToPlans(plans); !strings.HasPrefix(got, "2 plans: rebalance, tune. Their changes in the cluster stay") || strings.Contains(got, "In progress") {
		t.Error(got)
	}
	plans[1].Status.Phase = hcov1alpha1.PhaseInProgress
	if got := farewellToPlans(plans); !strings.HasSuffix(got, "In progress, and left unfinished: tune\n") {
		t.Error(got)
	}
}
