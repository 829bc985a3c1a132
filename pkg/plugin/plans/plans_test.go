package plans

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// weekly is a plan with a window, an end and two approvals, of which it has one.
func weekly() v1alpha1.ConfigurationPlan {
	at := func(day, hour int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC))
	}
	end := at(30, 0)
	return v1alpha1.ConfigurationPlan{
		ObjectMeta: metav1.ObjectMeta{Name: "rebalance"},
		Spec: v1alpha1.ConfigurationPlanSpec{
			Profile: v1alpha1.ProfileLoadAwareRebalancing, Approvals: 2, Expires: &end,
			Window: &v1alpha1.PlanWindow{Schedule: "0 22 * * Sat", TimeZone: "Europe/Berlin", Duration: metav1.Duration{Duration: 6 * time.Hour}},
		},
		Status: v1alpha1.ConfigurationPlanStatus{
			Phase: v1alpha1.PhaseReviewRequired, PlanHash: "h", RequestedBy: []string{"alice"}, ImpactSeverity: v1alpha1.ImpactHigh,
			Window:   &v1alpha1.PlanWindowStatus{OpensAt: at(28, 21), ClosesAt: at(29, 3), Local: "Sat 2026-11-28 22:00 CET, Europe/Berlin"},
			Approval: &v1alpha1.PlanApproval{Username: "bob", PlanHash: "h", Time: at(23, 4), Comment: "CHG-1"},
		},
	}
}

func TestShowsTerms(t *testing.T) {
	plan := weekly()
	plan.Status.Approval.Others = []v1alpha1.PlanApprover{{Username: "carol", Time: plan.Status.Approval.Time}}
	var out strings.Builder
	changes.PrintPlan(screen.New(&out, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourNever, func(string) string { return "" }), &plan, nil)
	for _, want := range []string{
		"begins only in its window, 0 22 * * Sat in Europe/Berlin for 6h0m0s: from 2026-11-28 21:00Z (Sat 2026-11-28 22:00 CET, Europe/Berlin) to 2026-11-29 03:00Z\n",
		"begins only before 2026-11-30 00:00Z\n", "is approved by 2 people, none of them alice\n",
		"approved by bob at 2026-11-23 04:00:00Z: CHG-1\n", "approved by carol at 2026-11-23 04:00:00Z\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not show %q:\n%s", want, out.String())
		}
	}
}

func TestListsTerms(t *testing.T) {
	plan := weekly()
	lines := InNeed([]v1alpha1.ConfigurationPlan{plan})
	if len(lines) != 1 || !strings.Contains(lines[0].Text, "waits for another approval (1 of 2), impact High") {
		t.Errorf("needs: %+v", lines)
	}
	if !lacksApprovals(&plan) {
		t.Error("one of two is taken for enough")
	}
	listed := Table([]v1alpha1.ConfigurationPlan{plan})
	if diff := cmp.Diff([]string{"PLAN", "PROFILE", "PHASE", "IMPACT", "ITEMS", "BEGINS"}, listed.Header); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	plan.Status.Approval.Others = []v1alpha1.PlanApprover{{Username: "carol"}}
	if lacksApprovals(&plan) {
		t.Error("two of two are not enough")
	}
	plan.Status.Phase, plan.Status.Window = v1alpha1.PhaseScheduled, nil
	if lines := InNeed([]v1alpha1.ConfigurationPlan{plan}); len(lines) != 0 {
		t.Errorf("a plan that waits for its window needs somebody: %+v", lines)
	}
	if listed := Table([]v1alpha1.ConfigurationPlan{plan}); len(listed.Header) != 5 {
		t.Errorf("no plan has a window, and there is a column: %v", listed.Header)
	}
}
