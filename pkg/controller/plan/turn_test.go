package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
)

func nightly(p *hco.ConfigurationPlan) {
	p.Spec.Window = &hco.PlanWindow{Schedule: "0 22 * * *", TimeZone: "UTC", Duration: metav1.Duration{Duration: 2 * time.Hour}}
}

func until(end time.Time) spec {
	return func(p *hco.ConfigurationPlan) { expires := metav1.NewTime(end); p.Spec.Expires = &expires }
}

func people(n int32) spec { return func(p *hco.ConfigurationPlan) { p.Spec.Approvals = n } }

// tonight returns the first window of a lab; the lab begins at noon.
func (l *lab) tonight() time.Time { return time.Date(2026, 7, 1, 22, 0, 0, 0, time.UTC) }

func (l *lab) untouched(why string) {
	l.t.Helper()
	if l.cluster.value(psi(), "spec", "kernelArguments") != nil {
		l.t.Errorf("%s, and the first item was applied", why)
	}
	l.lookAt(nil, why)
}

// wakesIn fails unless the pass requests the next pass after this time.
func (l *lab) wakesIn(want time.Duration) {
	l.t.Helper()
	l.must(l.pass("a"))
	if l.again != want {
		l.t.Errorf("the next pass is in %s, want %s", l.again, want)
	}
}

// TestWindow: an approved plan begins when its window opens, not before. An item that runs at the
// end of the window continues, and the next item waits for the next window. A new leader acts the
// same.
func TestWindow(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, nightly)
	plan := l.plan("a")
	if shown := plan.Status.Window; shown == nil || !shown.OpensAt.Time.Equal(l.tonight()) || shown.Local != "Wed 2026-07-01 22:00 UTC, UTC" {
		t.Fatalf("the user who approves does not see when it begins: %+v", shown)
	}
	l.approved()
	plan = l.is("a", v1alpha1.PhaseScheduled, "approved; it begins when its window opens at 2026-07-01T22:00:00Z", "WaitingForWindow")
	l.wakesIn(10 * time.Hour)
	if same := l.plan("a"); same.ResourceVersion != plan.ResourceVersion {
		t.Error("a plan that waits is written again and again")
	}
	l.restart()
	l.clock.SetTime(l.tonight().Add(-time.Millisecond))
	l.is("a", v1alpha1.PhaseScheduled)
	l.wakesIn(time.Millisecond)
	l.untouched("the window is closed")

	l.clock.SetTime(l.tonight())
	if plan = l.is("a", v1alpha1.PhaseInProgress); states(plan) != "InProgress Pending" {
		t.Errorf("items: %s", states(plan))
	}
	l.restart()
	l.wakesIn(2 * time.Hour)
	l.clock.SetTime(l.tonight().Add(2*time.Hour + time.Minute))
	l.is("a", v1alpha1.PhaseInProgress, "Waiting for 99-worker-psi-karg")
	l.cluster.roll("worker", 4)
	plan = l.is("a", v1alpha1.PhaseInProgress, "item 2 of 2, configure-descheduler, begins when its window opens at 2026-07-02T22:00:00Z", "WaitingForWindow")
	if states(plan) != "Completed Pending" {
		t.Errorf("items: %s", states(plan))
	}
	l.lookAt(nil, "the window is closed")
	l.restart()
	l.wakesIn(24*time.Hour - 2*time.Hour - time.Minute)
	l.clock.SetTime(l.tonight().Add(24 * time.Hour))
	plan = l.is("a", v1alpha1.PhaseCompleted)
	l.lookAt(int64(60), "the window is open")
	if plan.Status.Window != nil || plan.Status.Run != 1 {
		t.Errorf("a plan that is done has window %+v, run %d", plan.Status.Window, plan.Status.Run)
	}
	l.wakesIn(0)
}

// TestWindowMissed: if no replica led during the window, the plan waits for the next one. A plan
// can begin in the middle of a window.
func TestWindowMissed(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, nightly)
	l.approved()
	l.is("a", v1alpha1.PhaseScheduled)
	l.clock.SetTime(l.tonight().Add(2 * time.Hour))
	l.restart()
	l.is("a", v1alpha1.PhaseScheduled, "2026-07-02T22:00:00Z")
	l.untouched("the window was missed")
	l.clock.SetTime(l.tonight().Add(25 * time.Hour))
	l.restart()
	l.is("a", v1alpha1.PhaseInProgress)
}

// TestWindowOfTheHost: the host's clock counts. A leader's clock that is ahead begins nothing
// early, and a clock that is behind begins nothing late.
func TestWindowOfTheHost(t *testing.T) {
	store := newStore(t)
	for name, c := range map[string]struct {
		skew  time.Duration
		now   time.Duration
		phase v1alpha1.Phase
	}{
		"ahead":         {30 * time.Minute, 10 * time.Minute, v1alpha1.PhaseScheduled},
		"ahead, open":   {30 * time.Minute, 30 * time.Minute, v1alpha1.PhaseInProgress},
		"behind":        {-30 * time.Minute, -30 * time.Minute, v1alpha1.PhaseInProgress},
		"behind, early": {-30 * time.Minute, -31 * time.Minute, v1alpha1.PhaseScheduled},
		"behind, over":  {-30 * time.Minute, 90 * time.Minute, v1alpha1.PhaseScheduled},
	} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t)
			l.skew = c.skew
			l.reach(v1alpha1.PhaseReviewRequired, nightly)
			l.approved()
			l.clock.SetTime(l.tonight().Add(c.now))
			l.is("a", c.phase)
		})
	}
}

// TestWindowOfAStalePlan: a change of a target while an approved plan waits is reported at once,
// and the plan is not executed.
func TestWindowOfAStalePlan(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseScheduled)
	l.cluster.set(descheduler(), "mallory", "Debug", "spec", "logLevel")
	l.is("a", v1alpha1.PhaseScheduled, "is stale", "PlanStale")
	l.clock.SetTime(l.tonight())
	l.is("a", v1alpha1.PhaseFailed, "PlanStale", "nothing was applied")
	l.untouched("the plan is stale")
}

// TestWindowChanged: a new window is a new plan, which needs a new approval. Withdrawing Apply ends
// the wait.
func TestWindowChanged(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseScheduled)
	approved := l.plan("a").Status.PlanHash
	l.must(l.edit("a", func(p *hco.ConfigurationPlan) { p.Spec.Window.Schedule = "0 13 * * *" }))
	plan := l.is("a", v1alpha1.PhaseReviewRequired)
	if plan.Status.PlanHash == approved || plan.Status.Approval != nil {
		t.Errorf("the approval of %s is taken for one of %s", approved, plan.Status.PlanHash)
	}
	l.clock.SetTime(l.clock.Now().Add(time.Hour))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.untouched("nobody approved this window")
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress)

	other := newStore(t).newLab(t)
	other.reach(v1alpha1.PhaseScheduled)
	other.must(other.edit("a", action(hco.ActionDryRun)))
	other.is("a", v1alpha1.PhaseReviewRequired)
	other.clock.SetTime(other.tonight())
	other.is("a", v1alpha1.PhaseReviewRequired)
	other.untouched("the approval was withdrawn")
}

// TestExpires: an approval that was not used in time must be given again, for a later time.
func TestExpires(t *testing.T) {
	l := newStore(t).newLab(t)
	end := l.clock.Now().Add(time.Hour)
	l.reach(v1alpha1.PhaseReviewRequired, nightly, until(end))
	l.approved()
	l.is("a", v1alpha1.PhaseScheduled, "before that, at 2026-07-01T13:00:00Z, it expires")
	l.wakesIn(time.Hour)
	l.clock.SetTime(end)
	plan := l.is("a", v1alpha1.PhaseExpired, "not executed before spec.expires, 2026-07-01T13:00:00Z: set a later time", "ApprovalExpired")
	if plan.Status.Approval != nil || l.claimed() != "" {
		t.Errorf("the approval is %+v, the profile held by %q", plan.Status.Approval, l.claimed())
	}
	l.must(l.retry("a"))
	l.is("a", v1alpha1.PhaseExpired)
	l.must(l.edit("a", until(end.Add(24*time.Hour))))
	l.is("a", v1alpha1.PhaseReviewRequired, "nobody approved this plan")
	l.clock.SetTime(l.tonight())
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.untouched("the approval is over")
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress)
}

// TestExpiresInARun: an item that runs when an approval ends continues. Later items do not begin.
func TestExpiresInARun(t *testing.T) {
	l := newStore(t).newLab(t)
	end := l.clock.Now().Add(time.Hour)
	l.reach(v1alpha1.PhaseInProgress, until(end))
	l.clock.SetTime(end)
	if plan := l.is("a", v1alpha1.PhaseInProgress); states(plan) != "InProgress Pending" {
		t.Errorf("the item that runs was interrupted: %s", states(plan))
	}
	l.cluster.roll("worker", 4)
	plan := l.is("a", v1alpha1.PhaseExpired, "1 of 2 items are done")
	if states(plan) != "Completed Pending" {
		t.Errorf("items: %s", states(plan))
	}
	l.lookAt(nil, "the approval is over")
	if row := l.history("a")[0]; row.Outcome != v1alpha1.PhaseExpired || row.EndedAt == nil {
		t.Errorf("the history says %s", row.Outcome)
	}
	// A run can be rolled back although the time is over.
	l.must(l.rollback("a", 0))
	if plan := l.is("a", v1alpha1.PhaseReviewRequired); plan.Spec.Expires != nil {
		t.Error("the way back has expired with the way forth")
	}
}

// TestApprovals: two users approve, and neither has requested the plan.
func TestApprovals(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, people(2))
	hash := l.plan("a").Status.PlanHash
	if err := l.approve("a", hash); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "alice created the plan or changed its spec") {
		t.Errorf("who created the plan approves it: %v", err)
	}
	l.must(l.enforce("a"))
	l.is("a", v1alpha1.PhaseReviewRequired, "nobody approved this plan")
	l.must(l.approveAs("bob", "a", hash))
	plan := l.is("a", v1alpha1.PhaseReviewRequired, "1 of 2 approvals: approved by bob; another person approves it")
	if plan.Spec.Action != v1alpha1.ActionApply {
		t.Errorf("the action is %s", plan.Spec.Action)
	}
	if err := l.approveAs("bob", "a", hash); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "1 of 2 approvals") {
		t.Errorf("one person approves twice: %v", err)
	}
	l.untouched("one person approved")
	l.must(l.approveAs("carol", "a", hash))
	l.is("a", v1alpha1.PhaseInProgress)
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseCompleted)
	if given := l.history("a")[0].Approval; given.Username != "bob" || len(given.Others) != 1 || given.Others[0].Username != "carol" || given.Others[0].Comment != "CHG-1" {
		t.Errorf("the history names %+v", given)
	}
	if err := l.edit("a", people(1)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must not be lowered from 2 to 1") {
		t.Errorf("one person makes two into one: %v", err)
	}
}

// TestEventOfAnApprovalInAdvance: the event of a run mentions an approval in advance, and does not
// mention it for a reviewed plan.
func TestEventOfAnApprovalInAdvance(t *testing.T) {
	store := newStore(t)
	for name, c := range map[string]struct {
		action   hco.Action
		reviewed bool
	}{"in advance": {hco.ActionApply, false}, "reviewed": {hco.ActionDryRun, true}} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t).usual()
			l.must(l.create("a", take, action(c.action)))
			if c.reviewed {
				l.approved()
			}
			l.is("a", v1alpha1.PhaseInProgress)
			const inAdvance = "InProgress: executing without a review: action: Apply of alice approved the first plan in advance"
			if slices.Contains(l.events, inAdvance) == c.reviewed || slices.Contains(l.events, "InProgress: executing") != c.reviewed {
				t.Errorf("events: %q", l.events)
			}
		})
	}
}

// TestApprovalsOfWhoChanges: if an approver changes the options, their own approval and all earlier
// approvals end.
func TestApprovalsOfWhoChanges(t *testing.T) {
	store := newStore(t)
	for name, change := range map[string]spec{"what is computed": interval(120), "how it is executed": carryOn} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t)
			l.reach(v1alpha1.PhaseReviewRequired, people(2))
			l.must(l.approveAs("bob", "a", l.plan("a").Status.PlanHash))
			l.must(l.editAs("bob", configurationplan.Reviewed{}, "a", change))
			plan := l.is("a", v1alpha1.PhaseReviewRequired, "nobody approved this plan")
			if err := l.approveAs("bob", "a", plan.Status.PlanHash); !apierrors.IsForbidden(err) {
				t.Errorf("who changed the plan approves it: %v", err)
			}
			l.must(l.approveAs("carol", "a", plan.Status.PlanHash))
			l.is("a", v1alpha1.PhaseReviewRequired, "1 of 2 approvals: approved by carol")
			l.must(l.approveAs("dave", "a", plan.Status.PlanHash))
			l.is("a", v1alpha1.PhaseInProgress)
		})
	}
}

// TestApprovalsBySpec: an approval by spec counts like any other, together with the earlier
// approvals.
func TestApprovalsBySpec(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, people(2))
	hash := l.plan("a").Status.PlanHash
	pin := func(p *hco.ConfigurationPlan) { p.Spec.Action, p.Spec.ApprovedPlanHash = hco.ActionApply, hash }
	l.must(l.approveAs("bob", "a", hash))
	l.must(l.editAs("carol", configurationplan.Reviewed{}, "a", pin))
	l.is("a", v1alpha1.PhaseInProgress)

	other := newStore(t).newLab(t)
	other.usual()
	other.must(other.create("a", take, people(2), action(hco.ActionApply)))
	if plan := other.is("a", v1alpha1.PhaseReviewRequired); plan.Status.Approval != nil {
		t.Errorf("who creates the plan has approved it: %+v", plan.Status.Approval)
	}
}

// TestApprovalsNeedRights: both approvers must have the rights for the changes of the plan.
func TestApprovalsNeedRights(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, people(2))
	hash := l.plan("a").Status.PlanHash
	l.lacks, l.poor = []string{"patch machineconfigs"}, "carol"
	l.must(l.approveAs("bob", "a", hash))
	l.must(l.approveAs("carol", "a", hash))
	l.is("a", v1alpha1.PhaseFailed, "carol approved the plan and cannot patch machineconfigs", "ApproverLacksRights")
	l.untouched("one of two cannot do it")
}

// TestWindowUnreadable: a window that this program cannot parse never opens.
func TestWindowUnreadable(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, nightly)
	v := &scope{reconciler: l.loop, memory: l.loop.memoryOf(l.plan("a")), plan: l.plan("a")}
	v.plan.Spec.Window.TimeZone = "Nowhere/Land"
	if turn, err := v.turn(); err == nil || turn.Open {
		t.Errorf("it is open: %+v, %v", turn, err)
	}
}
