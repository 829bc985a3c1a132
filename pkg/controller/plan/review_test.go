package plan

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// TestOverrideCountsOnce: an override applies only to the write that sets it. The annotation stays,
// but a user who later activates the plan takes no profile by it.
func TestOverrideCountsOnce(t *testing.T) {
	l := newStore(t).newLab(t).usual()
	l.must(l.create("a", take))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.must(l.create("b", take, override("a")))
	l.is("b", v1alpha1.PhaseReviewRequired)
	l.must(l.edit("b", action(hco.ActionIgnore)))
	l.is("b", v1alpha1.PhaseIgnored)
	l.is("a", v1alpha1.PhaseReviewRequired)
	if err := l.edit("b", action(hco.ActionDryRun)); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `"a" holds profile`) {
		t.Errorf("waking a plan that had overridden another one: %v", err)
	}
	if l.claimed() != "a" {
		t.Errorf("%q has the profile", l.claimed())
	}
}

// TestPinnedByAnother: a user who sets Apply approves the waiting plan. They do not approve a plan
// that another user pinned before and can bring back.
func TestPinnedByAnother(t *testing.T) {
	l := newStore(t).newLab(t).usual()
	l.hyperConverged(1000)
	l.must(l.create("a", take))
	greedy := l.is("a", v1alpha1.PhaseReviewRequired).Status.PlanHash
	l.hyperConverged(5)
	l.must(l.retry("a"))
	if l.is("a", v1alpha1.PhaseReviewRequired).Status.PlanHash == greedy {
		t.Fatal("the limits make no difference")
	}
	l.must(l.edit("a", func(p *hco.ConfigurationPlan) { p.Spec.ApprovedPlanHash = greedy }))
	l.settle()
	l.must(l.edit("a", action(hco.ActionApply)))
	l.settle()
	l.hyperConverged(1000)
	l.must(l.retry("a"))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.lookAt(nil, "the plan that was approved is another one")
}

// TestSwappedAfterReview: a reviewer approves only the plan that they reviewed, even if another
// user replaces it meanwhile, for every way to approve.
func TestSwappedAfterReview(t *testing.T) {
	store := newStore(t)
	for name, c := range map[string]struct {
		reason string
		// approve sends the reviewer's approval after the plan has changed.
		approve func(l *lab, read *v1alpha1.ConfigurationPlan) error
		refused bool
	}{
		"nothing said": {"it would approve whatever is there", func(l *lab, _ *v1alpha1.ConfigurationPlan) error {
			return l.edit("a", action(hco.ActionApply))
		}, true},
		"hash, not kept": {"another plan waits", func(l *lab, read *v1alpha1.ConfigurationPlan) error {
			return l.editHaving(configurationplan.Reviewed{PlanHash: read.Status.PlanHash}, "a", action(hco.ActionApply))
		}, true},
		"resourceVersion": {"that state of the plan is gone", func(l *lab, read *v1alpha1.ConfigurationPlan) error {
			return l.editHaving(configurationplan.Reviewed{ResourceVersion: read.ResourceVersion}, "a", action(hco.ActionApply), func(p *hco.ConfigurationPlan) {
				p.ResourceVersion = read.ResourceVersion
			})
		}, true},
		"hash": {"it is kept, and only that plan is executed", func(l *lab, read *v1alpha1.ConfigurationPlan) error {
			return l.editHaving(configurationplan.Reviewed{PlanHash: read.Status.PlanHash}, "a", action(hco.ActionApply), pinned(read.Status.PlanHash))
		}, false},
		"subresource": {"it names the plan", func(l *lab, read *v1alpha1.ConfigurationPlan) error {
			return l.approve("a", read.Status.PlanHash)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t)
			l.reach(v1alpha1.PhaseReviewRequired)
			read := l.plan("a")
			l.must(l.edit("a", interval(600)))
			if now := l.is("a", v1alpha1.PhaseReviewRequired); now.Status.PlanHash == read.Status.PlanHash {
				t.Fatal("the options make no difference")
			}
			err := c.approve(l, read)
			if (err != nil) != c.refused {
				t.Errorf("%s: %v", c.reason, err)
			}
			l.is("a", v1alpha1.PhaseReviewRequired)
			l.lookAt(nil, "nobody has approved that plan: "+c.reason)
		})
	}
}

// TestApproveWhatWasReviewed: the error of a refused write has the required action, and names no
// plan that its author cannot have read. Each suggested way approves the reviewed plan.
func TestApproveWhatWasReviewed(t *testing.T) {
	store := newStore(t)
	for name, approve := range map[string]func(l *lab) error{
		"hash": func(l *lab) error { return l.enforce("a") },
		"resourceVersion": func(l *lab) error {
			return l.editHaving(configurationplan.Reviewed{ResourceVersion: l.plan("a").ResourceVersion}, "a", action(hco.ActionApply))
		},
		"hash, kept": func(l *lab) error { return l.edit("a", action(hco.ActionApply), pinned(l.plan("a").Status.PlanHash)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t)
			l.reach(v1alpha1.PhaseReviewRequired)
			hash := l.plan("a").Status.PlanHash
			err := l.edit("a", action(hco.ActionApply))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.approvedPlanHash") || !strings.Contains(err.Error(), "kubectl patch configplan a ") || strings.Contains(err.Error(), hash) {
				t.Errorf("Apply alone: %v", err)
			}
			l.must(approve(l))
			l.is("a", v1alpha1.PhaseInProgress)
		})
	}
	t.Run("pinned by another", func(t *testing.T) {
		l := store.newLab(t)
		l.reach(v1alpha1.PhaseReviewRequired)
		l.must(l.edit("a", pinned(l.plan("a").Status.PlanHash)))
		l.settle()
		if err := l.edit("a", action(hco.ActionApply)); !apierrors.IsInvalid(err) {
			t.Errorf("Apply alone approved what somebody else has pinned: %v", err)
		}
	})
	t.Run("before there is a plan", func(t *testing.T) {
		l := store.newLab(t).usual()
		l.cluster.ignorant = true
		l.must(l.create("a", take))
		l.must(l.edit("a", action(hco.ActionApply)))
		l.cluster.ignorant = false
		l.is("a", v1alpha1.PhaseReviewRequired, "nobody approved this plan")
		l.lookAt(nil, "what is computed later nobody has seen")
	})
}

func pinned(hash string) spec {
	return func(p *hco.ConfigurationPlan) { p.Spec.ApprovedPlanHash = hash }
}

// TestToggledTooFast: a user changes a drifted plan to DryRun and back to Apply between two passes.
// The plan is computed again, as the answer to the second write says.
func TestToggledTooFast(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseDrifted)
	l.is("a", v1alpha1.PhaseDrifted)
	l.must(l.edit("a", action(hco.ActionDryRun)))
	l.must(l.edit("a", action(hco.ActionApply)))
	l.is("a", v1alpha1.PhaseReviewRequired, "nobody approved this plan")
}

// TestPausedAcrossLeaders: a pause of a pool counts even if it began under the earlier leader.
func TestPausedAcrossLeaders(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, within(time.Hour))
	pause := func(paused bool) { l.cluster.set(poolID("worker"), "admin", paused, "spec", "paused") }
	pause(true)
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress)
	l.cluster.render("worker")
	l.cluster.progress("worker", 4, 1)
	for range 60 {
		l.is("a", v1alpha1.PhaseInProgress, "is paused")
		if l.again == 0 {
			t.Fatal("nobody takes the time")
		}
		l.clock.SetTime(l.clock.Now().Add(l.again))
	}
	l.is("a", v1alpha1.PhaseInProgress, "is paused")
	l.restart()
	l.is("a", v1alpha1.PhaseInProgress, "is paused")
	pause(false)
	l.is("a", v1alpha1.PhaseInProgress, "to stabilize")
}

// TestDeletingStops: a deleted plan that a finalizer keeps does nothing.
func TestDeletingStops(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	l.must(l.edit("a", func(p *hco.ConfigurationPlan) { p.Finalizers = []string{"example.com/audit"} }))
	l.must(l.remove("a"))
	l.is("a", v1alpha1.PhaseIgnored)
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseIgnored)
	l.lookAt(nil, "the plan is being deleted")
	if l.claimed() != "" {
		t.Errorf("%q has the profile", l.claimed())
	}
	if rows := l.history("a"); rows[0].EndedAt == nil {
		t.Errorf("history: %+v", rows)
	}
}

// TestRollbackOfLabels: a rollback also restores labels, because they select the nodes of a
// MachineConfig.
func TestRollbackOfLabels(t *testing.T) {
	const role = "machineconfiguration.openshift.io/role"
	l := newStore(t).newLab(t).usual()
	l.cluster.set(psi(), "admin", "infra", "metadata", "labels", role)
	l.must(l.create("a", take))
	l.approved()
	l.settle()
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseCompleted)
	l.must(l.rollback("a", 0))
	l.approved()
	l.settle()
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseCompleted, "Restored")
	if value := l.cluster.value(psi(), "metadata", "labels", role); value != "infra" {
		t.Errorf("the role is %v, and was infra", value)
	}
}

// TestRecreatedInARun: a plan is deleted during a run, and created again before the next pass. The
// run of the first plan ends, and the second keeps its profile, however late the report of the
// deletion arrives.
func TestRecreatedInARun(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	l.must(l.remove("a"))
	l.must(l.create("a", take))
	l.is("a", v1alpha1.PhaseReviewRequired)
	if rows := l.history("a"); len(rows) != 1 || rows[0].EndedAt == nil || rows[0].Outcome != v1alpha1.PhaseIgnored {
		t.Errorf("history: %+v", rows)
	}
	l.must(l.loop.forget(t.Context(), "a"))
	if l.claimed() != "a" {
		t.Errorf("%q has the profile", l.claimed())
	}
}

// TestRollbackOfAnothersObject: a rollback deletes objects that the run created. It keeps an object
// that another user created because the run could not.
func TestRollbackOfAnothersObject(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired)
	l.refusing(psi())
	l.approved()
	l.is("a", v1alpha1.PhaseFailed, "enable-psi-metrics Failed")
	l.cluster.refuse = nil
	l.cluster.set(psi(), "admin", []any{"psi=1"}, "spec", "kernelArguments")
	if err := l.rollback("a", 1); err == nil || !strings.Contains(err.Error(), "run 1 changed nothing that could be restored") {
		t.Errorf("a rollback of a run that changed nothing: %v", err)
	}
	l.is("a", v1alpha1.PhaseFailed, "enable-psi-metrics Failed")
	l.forgetApplied("a") // the marks on the target suffice
	l.must(l.rollback("a", 1))
	l.is("a", v1alpha1.PhaseFailed, "no run of this plan has written it")
}

type frozen struct{ why *rollout.Freeze }

func (f *frozen) Frozen() (*rollout.Freeze, error) { return f.why, nil }

// TestFrozen: a plan writes nothing while the cluster is frozen, and status names the author of the
// freeze.
func TestFrozen(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, within(time.Hour))
	freeze := &frozen{why: &rollout.Freeze{Author: "alice", Reason: "the year ends"}}
	l.loop.Freezes = freeze
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress, "frozen by alice: the year ends; nothing is written", "; Frozen;")
	if l.cluster.value(psi(), "spec") != nil {
		t.Error("something was written")
	}
	freeze.why = nil
	l.is("a", v1alpha1.PhaseInProgress, "to be rendered")
	l.clock.SetTime(l.clock.Now().Add(30 * time.Minute))
	freeze.why = &rollout.Freeze{Author: "alice", Reason: "again"}
	l.is("a", v1alpha1.PhaseInProgress, "frozen by alice: again")
	l.clock.SetTime(l.clock.Now().Add(24 * time.Hour))
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseInProgress, "frozen by alice: again")
	l.lookAt(nil, "the cluster is frozen")
	freeze.why = nil
	l.is("a", v1alpha1.PhaseCompleted)
}
