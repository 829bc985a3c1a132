package governance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
)

func TestJoin(t *testing.T) {
	bob := &v1alpha1.PlanApproval{PlanHash: "h", Username: "bob", Comment: "CHG-1", Mode: v1alpha1.ApprovalExplicit}
	carol := &v1alpha1.PlanApproval{PlanHash: "h", Username: "carol", Groups: []string{"ops"}, Mode: v1alpha1.ApprovalExplicit}
	used, another := *bob, *bob
	used.Run, another.PlanHash = 1, "g"
	both := *bob
	both.Others = []v1alpha1.PlanApprover{{Username: "carol", Groups: []string{"ops"}}}
	for name, c := range map[string]struct {
		reason       string
		needed       int32
		given, fresh *v1alpha1.PlanApproval
		want         *v1alpha1.PlanApproval
	}{
		"first":          {"nobody has approved it", 2, nil, bob, bob},
		"second":         {"both count", 2, bob, carol, &both},
		"one is enough":  {"the newest one counts, as before", 1, bob, carol, carol},
		"twice":          {"one person is one", 2, bob, bob, bob},
		"third":          {"", 3, &both, carol, &both},
		"another plan":   {"who approved another plan has not approved this one", 2, &another, carol, carol},
		"used":           {"who approved the run before has not approved this one", 2, &used, carol, carol},
		"without number": {"", 0, bob, carol, carol},
	} {
		t.Run(name, func(t *testing.T) {
			got := governance.Join(v1alpha1.ConfigurationPlanSpec{Approvals: c.needed}, c.given, c.fresh)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
	if len(bob.Others) != 0 {
		t.Error("what was given was changed")
	}
	each := governance.Each(both)
	if len(each) != 2 || each[0].Username != "bob" || each[1].Username != "carol" || each[1].Comment != "" || len(each[1].Groups) != 1 || each[1].PlanHash != "h" || each[0].Others != nil {
		t.Errorf("each: %+v", each)
	}
}

// TestRequests: no write removes a user from the requesters of a plan.
func TestRequests(t *testing.T) {
	all, refused := []string(nil), 0
	for i := range 40 {
		more, err := governance.Requests(all, fmt.Sprintf("user-%d", i))
		if err != nil {
			refused++
			continue
		}
		if len(more) != len(all)+1 || !slices.Equal(more[:len(all)], all) {
			t.Fatalf("%v became %v", all, more)
		}
		all = more
	}
	if len(all) != 16 || refused != 24 {
		t.Errorf("%d are kept, %d were refused", len(all), refused)
	}
	for _, known := range all {
		if more, err := governance.Requests(all, known); err != nil || !slices.Equal(more, all) {
			t.Errorf("%s cannot change the plan any more: %v, %v", known, more, err)
		}
	}
	two := v1alpha1.ConfigurationPlanSpec{Approvals: 2}
	if !governance.Excluded(two, []string{"a", "b"}, "b") || governance.Excluded(two, []string{"a"}, "c") || governance.Excluded(v1alpha1.ConfigurationPlanSpec{}, []string{"a"}, "a") {
		t.Error("who is excluded is not who asked, where several approve")
	}
}

func TestIsRequest(t *testing.T) {
	stored := v1alpha1.ConfigurationPlanSpec{Profile: "P", Action: v1alpha1.ActionDryRun}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ConfigurationPlanSpec)
		want   bool
	}{
		"nothing":       {func(*v1alpha1.ConfigurationPlanSpec) {}, false},
		"action":        {func(s *v1alpha1.ConfigurationPlanSpec) { s.Action = v1alpha1.ActionApply }, false},
		"hash":          {func(s *v1alpha1.ConfigurationPlanSpec) { s.ApprovedPlanHash = "h" }, false},
		"policy":        {func(s *v1alpha1.ConfigurationPlanSpec) { s.FailurePolicy = v1alpha1.FailurePolicyContinue }, true},
		"approvals":     {func(s *v1alpha1.ConfigurationPlanSpec) { s.Approvals = 2 }, true},
		"run":           {func(s *v1alpha1.ConfigurationPlanSpec) { s.RestoreRun = 1 }, true},
		"apply with it": {func(s *v1alpha1.ConfigurationPlanSpec) { s.Action, s.Approvals = v1alpha1.ActionApply, 2 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := stored
			c.change(&spec)
			if got := governance.IsRequest(spec, stored); got != c.want {
				t.Errorf("%t", got)
			}
		})
	}
}
