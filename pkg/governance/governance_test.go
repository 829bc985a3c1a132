package governance_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
)

// TestNext: every pair of a phase and an event is in the table once, or is refused.
func TestNext(t *testing.T) {
	events := map[governance.Event]bool{}
	rows := map[string]v1alpha1.Phase{}
	for _, row := range governance.Table() {
		events[row.On] = true
		for _, from := range row.From {
			key := string(from) + " " + string(row.On)
			if _, twice := rows[key]; twice {
				t.Errorf("%s is in the table twice", key)
			}
			rows[key] = row.To
		}
		if row.When == "" {
			t.Errorf("%s: the page has nothing to say", row.On)
		}
	}
	for _, phase := range governance.Phases() {
		for event := range events {
			want, known := rows[string(phase)+" "+string(event)]
			got, err := governance.Next(phase, event)
			switch {
			case known && (err != nil || got != want):
				t.Errorf("%s on %s: %s, %v; want %s", phase, event, got, err, want)
			case !known && (err == nil || got != phase):
				t.Errorf("%s on %s: %s, %v; want it to be refused", phase, event, got, err)
			}
		}
	}
	if got, err := governance.Next("", governance.EventDraft); err != nil || got != v1alpha1.PhaseDrafting {
		t.Errorf("a new plan: %s, %v", got, err)
	}
}

// TestTable: a plan is executed only after a review, and every phase has a way out.
func TestTable(t *testing.T) {
	for _, row := range governance.Table() {
		if row.To == v1alpha1.PhaseInProgress && !slices.Equal(row.From, []v1alpha1.Phase{v1alpha1.PhaseReviewRequired, v1alpha1.PhaseScheduled}) {
			t.Errorf("%s leads from %v to InProgress", row.On, row.From)
		}
	}
	for _, phase := range governance.Phases() {
		for _, event := range []governance.Event{governance.EventDraft, governance.EventIgnore} {
			if next, err := governance.Next(phase, event); err != nil && next != v1alpha1.PhaseDrafting && next != v1alpha1.PhaseIgnored {
				t.Errorf("%s is a dead end: %v", phase, err)
			}
		}
	}
}

func TestConditions(t *testing.T) {
	reasons := map[string]bool{}
	for _, reason := range governance.Reasons() {
		reasons[reason] = true
	}
	for _, phase := range governance.Phases() {
		conditions := governance.Conditions(governance.Situation{Phase: phase, Message: "why"})
		if len(conditions) != 7 {
			t.Errorf("%s: %d conditions, want all 7", phase, len(conditions))
		}
		for _, c := range conditions {
			if !reasons[c.Reason] || c.Status == "" {
				t.Errorf("%s: %s has status %q and reason %q, which is in no table", phase, c.Type, c.Status, c.Reason)
			}
			if c.Type == v1alpha1.ConditionReady && (c.Status == "True") != (phase == v1alpha1.PhaseCompleted) {
				t.Errorf("%s: Ready is %s", phase, c.Status)
			}
		}
	}
}

// TestDefect13CompletedWithErrorsIsNotReady: a plan with errors never reports success.
func TestDefect13CompletedWithErrorsIsNotReady(t *testing.T) {
	for _, c := range governance.Conditions(governance.Situation{Phase: v1alpha1.PhaseCompletedWithErrors}) {
		if (c.Type == v1alpha1.ConditionReady || c.Type == v1alpha1.ConditionProfileActive) && c.Status == "True" {
			t.Errorf("%s is True", c.Type)
		}
	}
}

func TestApprove(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		change governance.Change
		want   governance.Verdict
		hash   string
	}{
		"dry run":           {"nothing is approved", governance.Change{}, governance.Withdraw, ""},
		"created to apply":  {"the first plan of what was written", governance.Change{Created: true, IsApply: true, NewHash: true}, governance.Grant, ""},
		"created from copy": {"the approval was for another plan", governance.Change{Created: true, Copied: true, IsApply: true, NewHash: true}, governance.Withdraw, ""},
		"copied by hash":    {"that plan only", governance.Change{Created: true, Copied: true, IsApply: true, Hash: "b", NewHash: true}, governance.Grant, "b"},
		"created by hash":   {"that plan only", governance.Change{Created: true, IsApply: true, Hash: "b", NewHash: true}, governance.Grant, "b"},
		"nothing yet":       {"what will be computed nobody has seen", governance.Change{IsApply: true}, governance.Withdraw, ""},
		"blindly":           {"another plan may wait than the one that was reviewed", governance.Change{IsApply: true, Waiting: "a"}, governance.Refuse, ""},
		"reviewed":          {"the plan that waits", governance.Change{IsApply: true, Waiting: "a", Reviewed: true}, governance.Grant, "a"},
		"by hash":           {"that plan only", governance.Change{IsApply: true, Waiting: "a", Hash: "b", NewHash: true}, governance.Grant, "b"},
		"hash changed":      {"that plan only", governance.Change{WasApply: true, IsApply: true, Hash: "b", NewHash: true}, governance.Grant, "b"},
		"hash of before":    {"what somebody else has pinned is not what was there to be read", governance.Change{IsApply: true, Waiting: "a", Hash: "b", Reviewed: true}, governance.Withdraw, ""},
		"pinned by another": {"who pins need not be who may approve", governance.Change{IsApply: true, Waiting: "a", Hash: "a"}, governance.Refuse, ""},
		"hash that waits":   {"it is the plan that was there to be read", governance.Change{IsApply: true, Waiting: "a", Hash: "a", Reviewed: true}, governance.Grant, "a"},
		"hash, another way": {"what was pinned before is no approval of a plan on its way", governance.Change{IsApply: true, Hash: "b"}, governance.Withdraw, ""},
		"options and apply": {"what was reviewed is not what would be computed", governance.Change{IsApply: true, Inputs: true, Waiting: "a", Reviewed: true}, governance.Withdraw, ""},
		"options later":     {"a plan that differs needs a new approval", governance.Change{WasApply: true, IsApply: true, Inputs: true}, governance.Withdraw, ""},
		"other field":       {"it concerns execution only", governance.Change{WasApply: true, IsApply: true}, governance.Keep, ""},
		"stopped":           {"the approval ends", governance.Change{WasApply: true, Waiting: "a"}, governance.Withdraw, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, hash := governance.Approve(c.change); got != c.want || hash != c.hash {
				t.Errorf("%s: %s %q, want %s %q", c.reason, got, hash, c.want, c.hash)
			}
		})
	}
}

func TestExecutable(t *testing.T) {
	apply := v1alpha1.ConfigurationPlanSpec{Action: v1alpha1.ActionApply}
	for name, c := range map[string]struct {
		spec     v1alpha1.ConfigurationPlanSpec
		approval *v1alpha1.PlanApproval
		want     bool
		says     string
	}{
		"approved":       {apply, &v1alpha1.PlanApproval{PlanHash: "h"}, true, ""},
		"not approved":   {apply, nil, false, "approve hash h"},
		"another plan":   {apply, &v1alpha1.PlanApproval{PlanHash: "g"}, false, "g was approved"},
		"used":           {apply, &v1alpha1.PlanApproval{PlanHash: "h", Run: 3}, false, "run 3"},
		"standing":       {apply, &v1alpha1.PlanApproval{Mode: v1alpha1.ApprovalStanding}, false, "approve"},
		"dry run":        {v1alpha1.ConfigurationPlanSpec{Action: v1alpha1.ActionDryRun}, &v1alpha1.PlanApproval{PlanHash: "h"}, false, "approve"},
		"pinned":         {v1alpha1.ConfigurationPlanSpec{Action: v1alpha1.ActionApply, ApprovedPlanHash: "h"}, &v1alpha1.PlanApproval{PlanHash: "h"}, true, ""},
		"pinned other":   {v1alpha1.ConfigurationPlanSpec{Action: v1alpha1.ActionApply, ApprovedPlanHash: "g"}, &v1alpha1.PlanApproval{PlanHash: "h"}, false, "has another hash: review"},
		"one of two":     {v1alpha1.ConfigurationPlanSpec{Action: v1alpha1.ActionApply, Approvals: 2}, &v1alpha1.PlanApproval{PlanHash: "h", Username: "bob"}, false, "1 of 2 approvals: approved by bob"},
		"two of two":     {v1alpha1.ConfigurationPlanSpec{Action: v1alpha1.ActionApply, Approvals: 2}, &v1alpha1.PlanApproval{PlanHash: "h", Username: "bob", Others: []v1alpha1.PlanApprover{{Username: "carol"}}}, true, ""},
		"no plan at all": {apply, &v1alpha1.PlanApproval{PlanHash: "g"}, false, "approve"},
	} {
		t.Run(name, func(t *testing.T) {
			got, says := governance.Executable("rebalance", c.spec, "h", c.approval)
			if got != c.want || !strings.Contains(says, c.says) {
				t.Errorf("%t, %q; want %t and %q", got, says, c.want, c.says)
			}
			if !got && c.spec.Approvals == 0 && !strings.Contains(says, `kubectl patch configplan rebalance --type=merge -p '{"spec":{"action":"Apply","approvedPlanHash":"h"}}'`) {
				t.Errorf("%q does not say how to approve the plan that was reviewed", says)
			}
		})
	}
}

func TestPlanHash(t *testing.T) {
	item := v1alpha1.PlanItem{Name: "a", Digest: "d", Fingerprint: "f", ImpactSeverity: v1alpha1.ImpactHigh,
		TargetRef: v1alpha1.TargetRef{APIVersion: "v1", Kind: "K", Name: "n"}}
	hash := governance.PlanHash(v1alpha1.ConfigurationPlanSpec{}, []v1alpha1.PlanItem{item}, "")
	for name, change := range map[string]func(*v1alpha1.PlanItem){
		"desired state": func(i *v1alpha1.PlanItem) { i.Digest = "e" },
		"live state":    func(i *v1alpha1.PlanItem) { i.Fingerprint = "g" },
		"impact":        func(i *v1alpha1.PlanItem) { i.ImpactSeverity = v1alpha1.ImpactLow },
		"blast radius":  func(i *v1alpha1.PlanItem) { i.BlastRadius = &v1alpha1.BlastRadius{Nodes: 3} },
		"target":        func(i *v1alpha1.PlanItem) { i.TargetRef.Name = "m" },
		"taken fields":  func(i *v1alpha1.PlanItem) { i.Takes = []v1alpha1.TakenFields{{Manager: "argocd"}} },
	} {
		other := item
		change(&other)
		if governance.PlanHash(v1alpha1.ConfigurationPlanSpec{}, []v1alpha1.PlanItem{other}, "") == hash {
			t.Errorf("%s is not part of the hash", name)
		}
	}
	other := item
	other.State, other.Message, other.Diff = v1alpha1.ItemCompleted, "done", "+ a"
	if governance.PlanHash(v1alpha1.ConfigurationPlanSpec{}, []v1alpha1.PlanItem{other}, "") != hash {
		t.Error("progress is part of the hash")
	}
	if governance.PlanHash(v1alpha1.ConfigurationPlanSpec{}, []v1alpha1.PlanItem{item}, "sha256:1") == hash {
		t.Error("the definition is not part of the hash")
	}
}

// TestDefect12EveryOptionCounts: every option is an input of the plan.
func TestDefect12EveryOptionCounts(t *testing.T) {
	yes, n := true, int32(7)
	seen := map[string]string{governance.InputsHash(v1alpha1.ConfigurationPlanSpec{}): "none"}
	for name, options := range map[string]v1alpha1.LoadAwareRebalancingOptions{
		"psi": {EnablePSIMetrics: &yes}, "interval": {DeschedulingIntervalSeconds: &n}, "mode": {Mode: v1alpha1.DeschedulerPredictive},
		"thresholds": {DeviationThresholds: v1alpha1.DeviationHigh}, "total": {EvictionLimitTotal: &n}, "node": {EvictionLimitNode: &n},
	} {
		hash := governance.InputsHash(v1alpha1.ConfigurationPlanSpec{Options: &v1alpha1.PlanOptions{LoadAwareRebalancing: &options}})
		if other, same := seen[hash]; same {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[hash] = name
	}
}

// TestPage: the page is printed from the tables. UPDATE_DOCS=1 writes it.
func TestPage(t *testing.T) {
	const page = "../../docs/reference/configuration-plan-states.md"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(page, []byte(governance.Print()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(governance.Print(), string(have)); diff != "" {
		t.Errorf("%s is not what the tables say; UPDATE_DOCS=1 go test ./pkg/governance (-want +got):\n%s", page, diff)
	}
}

// TestClip: a shortened message is valid UTF-8. The API would refuse a part of a character.
func TestClip(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, message, want string
	}{
		"Short":     {reason: "nothing is lost without need", message: "short", want: "short"},
		"Full":      {reason: "the limit itself is allowed", message: strings.Repeat("a", v1alpha1.MaxMessageBytes), want: strings.Repeat("a", v1alpha1.MaxMessageBytes)},
		"Long":      {reason: "what is cut says so", message: strings.Repeat("a", v1alpha1.MaxMessageBytes+1), want: strings.Repeat("a", v1alpha1.MaxMessageBytes-3) + "…"},
		"Character": {reason: "no half of one is kept", message: "a" + strings.Repeat("é", v1alpha1.MaxMessageBytes), want: "a" + strings.Repeat("é", (v1alpha1.MaxMessageBytes-4)/2) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, governance.Clip(tc.message)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
