package plan

import (
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/loadawarerebalancing"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
)

func afterDials(p *hco.ConfigurationPlan) { p.Spec.Requires = []hco.ProfileName{"Dials"} }

func afterKnobs(p *hco.ConfigurationPlan) {
	p.Spec.Requires = []hco.ProfileName{hco.ProfileLoadAwareRebalancing}
}

// group is a cluster with two profiles that share no target. The first has two items.
func (s *storeOf) group(t *testing.T) *lab {
	return s.newLab(t, knobs{n: 2}, apart{dials{field: "value", value: 70}})
}

type apart struct{ dials }

func (d apart) Items(facts profile.Facts, options *v1alpha1.PlanOptions) ([]profile.Item, error) {
	items, err := d.dials.Items(facts, options)
	items[0].Object["metadata"] = map[string]any{"name": "dial"}
	return items, err
}

// TestRequiresAnotherProfile: a plan with a requirement is reviewed and approved like any other. It
// begins when the required plan is in effect. Each change of the required plan enqueues it.
func TestRequiresAnotherProfile(t *testing.T) {
	l := newStore(t).group(t)
	l.must(l.create("a", afterDials))
	plan := l.is("a", v1alpha1.PhaseReviewRequired, "ReviewRequired", "it begins when profile Dials is in effect, for which there is no plan")
	l.must(l.approve("a", plan.Status.PlanHash))
	l.is("a", v1alpha1.PhaseScheduled, "approved; it begins when profile Dials is in effect, for which there is no plan", "WaitingForProfile")
	l.must(l.create("b", ofDials))
	if got := l.loop.neighboursOf(t.Context(), l.plan("b")); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("a change of b has %v looked at, want a", got)
	}
	b := l.is("b", v1alpha1.PhaseReviewRequired)
	l.is("a", v1alpha1.PhaseScheduled, `profile Dials is in effect, whose plan "b" is ReviewRequired`)
	if l.cluster.value(knob(0), "spec", "value") != nil {
		t.Fatal("it began before what it requires is in effect")
	}
	l.restart()
	l.must(l.approve("b", b.Status.PlanHash))
	l.is("b", v1alpha1.PhaseCompleted)
	l.is("a", v1alpha1.PhaseCompleted)

	// A plan in effect stays in effect, and a rollback requires nothing.
	l.must(l.rollback("b", 1))
	l.is("b", v1alpha1.PhaseReviewRequired)
	l.is("a", v1alpha1.PhaseCompleted)
	l.must(l.rollback("a", 1))
	plan = l.is("a", v1alpha1.PhaseReviewRequired)
	l.must(l.approve("a", plan.Status.PlanHash))
	l.is("a", v1alpha1.PhaseCompleted, "what there was before run 1 is restored")
}

// TestRequiredPlanLeavesEffect: a plan waits between two items if the required plan is no longer in
// effect. The running item is not interrupted.
func TestRequiredPlanLeavesEffect(t *testing.T) {
	l := newStore(t).newLab(t, loadawarerebalancing.Profile{}, apart{dials{field: "value", value: 70}}).usual()
	dial := knob(0)
	dial.Name = "dial"
	l.must(l.create("b", ofDials, action(hco.ActionApply)))
	l.is("b", v1alpha1.PhaseCompleted)
	l.must(l.create("a", take, afterDials, action(hco.ActionApply)))
	l.is("a", v1alpha1.PhaseInProgress, "Waiting for 99-worker-psi-karg")
	l.cluster.set(dial, "kubectl", int64(5), "spec", "value")
	l.is("b", v1alpha1.PhaseDrifted)
	l.is("a", v1alpha1.PhaseInProgress, "Waiting for 99-worker-psi-karg", "; InProgress;")
	l.cluster.roll("worker", 4)
	plan := l.is("a", v1alpha1.PhaseInProgress, `item 2 of 2, configure-descheduler, begins when profile Dials is in effect, whose plan "b" is Drifted`, "WaitingForProfile")
	if states(plan) != "Completed Pending" {
		t.Errorf("items: %s", states(plan))
	}
	l.cluster.set(dial, "kubectl", int64(70), "spec", "value")
	l.is("b", v1alpha1.PhaseCompleted)
	l.is("a", v1alpha1.PhaseCompleted)
}

// TestRequiresAndWindow: a plan with a window waits for both.
func TestRequiresAndWindow(t *testing.T) {
	l := newStore(t).group(t)
	l.must(l.create("a", afterDials, nightly))
	l.approved()
	l.is("a", v1alpha1.PhaseScheduled, "profile Dials is in effect, for which there is no plan, and its window opens at 2026-07-01T22:00:00Z", "WaitingForProfile")
	l.clock.SetTime(l.tonight())
	l.is("a", v1alpha1.PhaseScheduled, "for which there is no plan", "WaitingForProfile")
	l.clock.SetTime(l.tonight().Add(3 * time.Hour))
	l.must(l.create("b", ofDials, action(hco.ActionApply)))
	l.is("b", v1alpha1.PhaseCompleted)
	l.is("a", v1alpha1.PhaseScheduled, "WaitingForWindow", "2026-07-02T22:00:00Z")
	l.clock.SetTime(l.tonight().Add(24 * time.Hour))
	l.is("a", v1alpha1.PhaseCompleted)
}

// TestPlansThatRequireEachOther: plans that require each other never begin, and report that. A
// change of one plan frees both.
func TestPlansThatRequireEachOther(t *testing.T) {
	l := newStore(t).group(t)
	l.must(l.create("a", afterDials, action(hco.ActionApply)))
	l.must(l.create("b", ofDials, afterKnobs, action(hco.ActionApply)))
	l.is("a", v1alpha1.PhaseScheduled, "that requires profile LoadAwareRebalancing in turn, so neither begins")
	l.is("b", v1alpha1.PhaseScheduled, "that requires profile Dials in turn, so neither begins")
	l.must(l.edit("b", func(p *hco.ConfigurationPlan) { p.Spec.Requires = nil }))
	b := l.is("b", v1alpha1.PhaseReviewRequired) // a new plan, which is not approved
	l.must(l.editHaving(configurationplan.Reviewed{PlanHash: b.Status.PlanHash}, "b", action(hco.ActionDryRun)))
	l.settle()
	l.must(l.approve("b", l.plan("b").Status.PlanHash))
	l.is("b", v1alpha1.PhaseCompleted)
	l.is("a", v1alpha1.PhaseCompleted)
}
