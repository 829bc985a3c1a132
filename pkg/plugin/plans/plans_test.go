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

// weekly returns a plan with a window, an expiry and one of two approvals.
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
		"begins only before 2026-11-30 00:00Z\n", "needs approval by 2 people other than alice\n",
		"approved by bob at 2026-11-23 04:00:00Z: CHG-1\n", "approved by carol at 2026-11-23 04:00:00Z\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not show %q:\n%s", want, out.String())
		}
	}
}

// TestShowsStandingApproval: the output distinguishes an approval that was given when the plan was
// created, without a review, from an approval by hash.
func TestShowsStandingApproval(t *testing.T) {
	for mode, want := range map[v1alpha1.ApprovalMode]string{
		v1alpha1.ApprovalStanding: "approved by bob at 2026-11-23 04:00:00Z: its spec had action: Apply when the plan was created, which approves the first plan that is computed without a review\n",
		v1alpha1.ApprovalExplicit: "approved by bob at 2026-11-23 04:00:00Z\n",
	} {
		plan := weekly()
		plan.Status.Approval.Mode, plan.Status.Approval.Comment = mode, ""
		var out strings.Builder
		changes.PrintPlan(screen.New(&out, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourNever, func(string) string { return "" }), &plan, nil)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: it does not show %q:\n%s", mode, want, out.String())
		}
	}
}

// TestShowsDone: changes of the plan itself are not shown as drift. An approval of another plan
// does not count.
func TestShowsDone(t *testing.T) {
	show := func(plan *v1alpha1.ConfigurationPlan, diff *v1alpha1.PlanDiff) string {
		var out strings.Builder
		changes.PrintPlan(screen.New(&out, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourNever, func(string) string { return "" }), plan, diff)
		return out.String()
	}
	diff := &v1alpha1.PlanDiff{Items: []v1alpha1.PlanDiffItem{{Name: "one", Stale: true, Message: "it is as it should be"}}}
	for state, want := range map[v1alpha1.ItemState]bool{
		v1alpha1.ItemCompleted: false, v1alpha1.ItemSkipped: false, v1alpha1.ItemInProgress: false, v1alpha1.ItemPending: true, v1alpha1.ItemFailed: true,
	} {
		plan := weekly()
		plan.Status.Items = []v1alpha1.PlanItem{{Name: "one", State: state}}
		if shown := show(&plan, diff); strings.Contains(shown, "has changed since the plan was computed") != want {
			t.Errorf("%s: %s", state, shown)
		}
	}
	plan := weekly()
	plan.Status.Approval.PlanHash, plan.Status.Approval.Run, plan.Spec.RestoreRun = "other", 1, 3
	shown := show(&plan, nil)
	for _, want := range []string{"this plan is not approved; an earlier one was: hash other, run 1\n", "ReviewRequired (undo of run 3), impact High"} {
		if !strings.Contains(shown, want) {
			t.Errorf("it does not show %q:\n%s", want, shown)
		}
	}
}

// TestHistoryOfSeveral: the run numbers of each plan with a name begin at 1.
func TestHistoryOfSeveral(t *testing.T) {
	ended := metav1.NewTime(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC))
	run := func(plan string, number, restored int64) v1alpha1.PlanRun {
		return v1alpha1.PlanRun{Plan: plan, Run: number, RestoreRun: restored, Outcome: v1alpha1.PhaseCompleted, EndedAt: &ended}
	}
	for reason, tc := range map[string]struct {
		runs []v1alpha1.PlanRun
		uid  string
		want []string
	}{
		"one plan":                   {[]v1alpha1.PlanRun{run("a", 2, 1), run("a", 1, 0)}, "a", []string{"2", "1"}},
		"an earlier plan":            {[]v1alpha1.PlanRun{run("b", 1, 0), run("aaaaaaaa-1", 1, 0)}, "b", []string{"1 this", "1 earlier, aaaaaaaa"}},
		"one plan, deleted":          {[]v1alpha1.PlanRun{run("a", 1, 0)}, "", []string{"1"}},
		"a plan that has not run":    {[]v1alpha1.PlanRun{run("a", 1, 0)}, "b", []string{"1 earlier, a"}},
		"nothing that ever happened": {nil, "b", nil},
	} {
		var got []string
		listed := historyTable(tc.runs, tc.uid)
		for _, row := range listed.Rows {
			said := row[0].Text
			if listed.Header[1] == "PLAN" {
				said += " " + row[1].Text
			}
			got = append(got, said)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	undone := run("a", 2, 1)
	if got := outcomeOf(&undone); got != "Completed (undo of run 1)" {
		t.Error(got)
	}
}

// TestListsFreeze: the table of plans, which status also prints, shows that the cluster is frozen.
func TestListsFreeze(t *testing.T) {
	plan := weekly()
	plan.Status.Phase, plan.Status.Window = v1alpha1.PhaseInProgress, nil
	plan.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: "Frozen"}}
	listed := Table([]v1alpha1.ConfigurationPlan{plan})
	if diff := cmp.Diff([]string{"PLAN", "PROFILE", "PHASE", "IMPACT", "ITEMS", "CURRENT"}, listed.Header); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := current(&plan); got != "Frozen" {
		t.Errorf("current is %q", got)
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
	plan.Spec.Requires = []v1alpha1.ProfileName{"A", "B"}
	plan.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: waitingForProfile}}
	if got := begins(&plan); got != "after A,B" {
		t.Errorf("a plan that waits for other profiles begins %q", got)
	}
}
