package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// These tests show that this controller does not have the defects of another implementation
// (docs/reference/conformance.md).

// lookAt checks the value of the descheduler that options determine.
func (l *lab) lookAt(want any, why string) {
	l.t.Helper()
	if got := l.cluster.value(descheduler(), "spec", "deschedulingIntervalSeconds"); got != want {
		l.t.Errorf("%s: the interval is %v, want %v", why, got, want)
	}
}

func (l *lab) complete() {
	l.t.Helper()
	l.approved()
	l.settle()
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseCompleted)
}

// TestDefect01OptionsEditedInReview: new options and Apply in one patch approve neither the
// reviewed plan nor the new one. The same holds for two patches before the controller saw the
// first.
func TestDefect01OptionsEditedInReview(t *testing.T) {
	store := newStore(t)
	for name, edits := range map[string][][]spec{
		"one patch":   {{interval(120), action(hco.ActionApply)}},
		"two patches": {{interval(120)}, {action(hco.ActionApply)}},
	} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t)
			l.reach(v1alpha1.PhaseReviewRequired)
			reviewed := l.plan("a").Status.PlanHash
			for _, edit := range edits {
				l.must(l.edit("a", edit...))
			}
			plan := l.is("a", v1alpha1.PhaseReviewRequired, "nobody approved this plan")
			if plan.Status.PlanHash == reviewed || plan.Status.Run != 0 {
				t.Errorf("the plan is %s, reviewed was %s, run %d", plan.Status.PlanHash, reviewed, plan.Status.Run)
			}
			l.lookAt(nil, "nothing was approved")
			l.must(l.approve("a", plan.Status.PlanHash))
			l.settle()
			l.cluster.roll("worker", 4)
			l.is("a", v1alpha1.PhaseCompleted)
			l.lookAt(int64(120), "the new plan was approved")
		})
	}
}

// TestDefect02DryRunStopsARun: DryRun stops a run between its items.
func TestDefect02DryRunStopsARun(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	l.must(l.edit("a", action(hco.ActionDryRun)))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.lookAt(nil, "the run was stopped before the second item")
	if row := l.history("a")[0]; row.Outcome == "" || row.EndedAt == nil {
		t.Errorf("the run that was stopped has no end: %+v", row)
	}
}

// TestDefect03DryRunOfACompletedPlan: DryRun on a plan in effect computes it again, also if the
// first try fails.
func TestDefect03DryRunOfACompletedPlan(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	l.must(l.edit("a", action(hco.ActionDryRun), interval(120)))
	l.cluster.down = true
	l.is("a", v1alpha1.PhaseCompleted, "the cluster is down")
	l.cluster.down = false
	plan := l.is("a", v1alpha1.PhaseReviewRequired)
	if diff := plan.Status.Items[1].Diff; !strings.Contains(diff, "+  deschedulingIntervalSeconds: 120") {
		t.Errorf("the plan is the old one:\n%s", diff)
	}
}

// TestDefect04StrictlySequential: an item that is not healthy blocks the later items, even if their
// objects change.
func TestDefect04StrictlySequential(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	for _, updated := range []int64{0, 1, 3} {
		l.cluster.render("worker")
		l.cluster.progress("worker", 4, updated)
		l.cluster.set(descheduler(), "mallory", "Debug", "spec", "logLevel2")
		l.cluster.alter(descheduler(), "mallory", func(o map[string]any) { delete(o["spec"].(map[string]any), "logLevel2") })
		plan := l.is("a", v1alpha1.PhaseInProgress, `"worker" to stabilize`)
		if states(plan) != "InProgress Pending" {
			t.Errorf("%d nodes updated: items %s", updated, states(plan))
		}
		l.lookAt(nil, "the pool is not updated")
	}
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseCompleted)
	l.lookAt(int64(60), "the pool is updated")
}

// TestDefect05AbortAppliesNothingMore: Abort does not touch the items after a failed item, and the
// message has the commands to continue.
func TestDefect05AbortAppliesNothingMore(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, within(time.Hour))
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress)
	l.clock.SetTime(l.clock.Now().Add(time.Hour))
	plan := l.is("a", v1alpha1.PhaseFailed, "not healthy within 1h", "kubectl penstock plan run a (or a POST to the subresource retry) plans the rest, and a rollback undoes the executed changes")
	if states(plan) != "Failed Pending" {
		t.Errorf("items: %s", states(plan))
	}
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseFailed)
	l.lookAt(nil, "the plan was aborted")
}

// TestDefect06WaitTimeoutNeedsNoEvent: a wait ends in time without an event, because the pass
// requests the next pass.
func TestDefect06WaitTimeoutNeedsNoEvent(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, within(time.Hour))
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress)
	l.clock.SetTime(l.clock.Now().Add(20 * time.Minute))
	l.must(l.pass("a"))
	if l.again != 40*time.Minute {
		t.Errorf("the next pass is in %s, and the time ends in 40m", l.again)
	}
	l.restart() // a new leader has the same knowledge
	l.must(l.pass("a"))
	if l.again != 40*time.Minute {
		t.Errorf("after a restart the next pass is in %s", l.again)
	}
	l.clock.SetTime(l.clock.Now().Add(40 * time.Minute))
	l.must(l.pass("a"))
	l.is("a", v1alpha1.PhaseFailed, "not healthy within 1h0m0s")
}

// TestDefect07LateItemsAreCheckedAgain: the second item is checked when its turn begins, hours
// later.
func TestDefect07LateItemsAreCheckedAgain(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	l.cluster.set(descheduler(), "mallory", "Debug", "spec", "logLevel")
	l.clock.SetTime(l.clock.Now().Add(5 * time.Hour))
	l.cluster.roll("worker", 4)
	plan := l.is("a", v1alpha1.PhaseFailed, "PlanStale", "stale: changed since it was reviewed; last written by mallory")
	if states(plan) != "Completed Failed" {
		t.Errorf("items: %s", states(plan))
	}
	l.lookAt(nil, "it is stale")
	// One command computes the plan again.
	l.must(l.retry("a"))
	l.complete()
	l.lookAt(int64(60), "it was reviewed again")
}

// TestDefect14DriftClears: drift that ends is removed from the phase, the conditions and the item.
func TestDefect14DriftClears(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseDrifted)
	l.is("a", v1alpha1.PhaseDrifted, "was changed by mallory")
	l.restart()
	l.is("a", v1alpha1.PhaseDrifted, "was changed by mallory")
	l.undo()
	plan := l.is("a", v1alpha1.PhaseCompleted, "NoDrift")
	for _, item := range plan.Status.Items {
		if strings.Contains(item.Message, "drifted") {
			t.Errorf("item %s still says %q", item.Name, item.Message)
		}
	}
}

// hyperConverged sets the number of live migrations that the cluster allows.
func (l *lab) hyperConverged(most int64) {
	id := manifest.ID{Group: "hco.kubevirt.io", Kind: "HyperConverged", Namespace: "openshift-cnv", Name: "kubevirt-hyperconverged"}
	l.cluster.set(id, "admin", most, "spec", "virtualization", "liveMigrationConfig", "parallelMigrationsPerCluster")
}

// TestDefect15InputsThatChange: present inputs are compared with the inputs of the computation. A
// change is reported, and does nothing else. A change back ends the report.
func TestDefect15InputsThatChange(t *testing.T) {
	l := newStore(t).newLab(t)
	l.hyperConverged(6)
	l.reach(v1alpha1.PhaseCompleted)
	if got := l.cluster.value(descheduler(), "spec", "evictionLimits", "total"); got != int64(6) {
		t.Fatalf("the limit is %v", got)
	}
	l.cluster.spent()
	l.hyperConverged(8)
	l.is("a", v1alpha1.PhaseCompleted, "LogicChanged")
	l.restart()
	l.cluster.ignorant = true // the report stays while facts are unknown
	l.is("a", v1alpha1.PhaseCompleted, "LogicChanged")
	l.cluster.ignorant = false
	if got := l.cluster.value(descheduler(), "spec", "evictionLimits", "total"); got != int64(6) {
		t.Errorf("the limit is %v: nobody approved that", got)
	}
	l.hyperConverged(6)
	l.is("a", v1alpha1.PhaseCompleted, "UpToDate")
	if spent := l.cluster.spent(); slices.ContainsFunc(spent, func(r string) bool { return strings.HasPrefix(r, "apply") }) {
		t.Errorf("requests: %v", spent)
	}
}

// TestDefect17AlignedByHand: the live objects decide whether there is work. Targets that a user
// corrected by hand need no run.
func TestDefect17AlignedByHand(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	l.must(l.edit("a", interval(120), action(hco.ActionDryRun)))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.cluster.set(descheduler(), "mallory", int64(120), "spec", "deschedulingIntervalSeconds")
	l.is("a", v1alpha1.PhaseReviewRequired, "is stale")
	l.must(l.retry("a"))
	plan := l.is("a", v1alpha1.PhaseCompleted, "everything is already as the plan says")
	if plan.Status.Run != 1 || states(plan) != "Skipped Skipped" {
		t.Errorf("run %d, items %s", plan.Status.Run, states(plan))
	}
}

// TestDefect18AppliedOnce: an awaited item is applied once, in any number of passes.
func TestDefect18AppliedOnce(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	for range 5 {
		l.must(l.pass("a"))
	}
	l.restart()
	for range 5 {
		l.must(l.pass("a"))
	}
	applied := 0
	for _, request := range l.cluster.spent() {
		if strings.HasPrefix(request, "apply ") {
			applied++
		}
	}
	if applied != 1 {
		t.Errorf("applied %d times", applied)
	}
}

// TestDefect19WaysOutOfFailed: a failed plan can continue, and can be rolled back.
func TestDefect19WaysOutOfFailed(t *testing.T) {
	store := newStore(t)
	t.Run("retry", func(t *testing.T) {
		l := store.newLab(t)
		l.reach(v1alpha1.PhaseFailed)
		l.cluster.refuse = nil
		l.must(l.retry("a"))
		plan := l.is("a", v1alpha1.PhaseReviewRequired)
		if plan.Status.Items[0].Action != v1alpha1.ItemNone || plan.Status.Items[1].Action != v1alpha1.ItemUpdate {
			t.Errorf("what is left: %s, %s", plan.Status.Items[0].Action, plan.Status.Items[1].Action)
		}
		l.must(l.approve("a", plan.Status.PlanHash))
		l.is("a", v1alpha1.PhaseCompleted)
	})
	t.Run("rollback", func(t *testing.T) {
		l := store.newLab(t)
		l.reach(v1alpha1.PhaseFailed)
		l.cluster.refuse = nil
		l.must(l.rollback("a", 0))
		l.approved()
		l.settle()
		l.cluster.roll("worker", 4)
		l.is("a", v1alpha1.PhaseCompleted, "Restored")
		if l.cluster.value(psi(), "spec") != nil {
			t.Error("what the run made is still there")
		}
	})
}
