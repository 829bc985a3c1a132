package plan

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// degraded sets the Degraded condition that the descheduler's operator reports, since a time.
func (l *lab) degraded(status string, since time.Time) {
	l.cluster.alter(descheduler(), "descheduler-operator@status", func(o map[string]any) {
		o["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "TargetConfigControllerDegraded", "status": status, "message": "thresholds exclude each other", "lastTransitionTime": since.UTC().Format(time.RFC3339)}}}
	})
}

// TestUnhealthyAfterwards: completed means healthy. If the operator later reports a problem, the
// plan shows it until the operator recovers. Penstock writes nothing to the cluster, and the plan
// stays in effect.
func TestUnhealthyAfterwards(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	healthy := func(ready, healthy string) {
		t.Helper()
		conditions := l.plan("a").Status.Conditions
		for kind, want := range map[string]string{v1alpha1.ConditionReady: ready, v1alpha1.ConditionHealthy: healthy, v1alpha1.ConditionProfileActive: "True", v1alpha1.ConditionStalled: "False"} {
			if found := meta.FindStatusCondition(conditions, kind); found == nil || string(found.Status) != want {
				t.Errorf("%s is %+v, want %s", kind, found, want)
			}
		}
	}
	l.is("a", v1alpha1.PhaseCompleted)
	healthy("True", "True")
	l.cluster.spent()
	l.degraded("True", l.clock.Now())
	l.is("a", v1alpha1.PhaseCompleted, "not healthy now: item configure-descheduler: its operator is degraded: thresholds exclude each other", "TargetUnhealthy")
	healthy("False", "False")
	l.degraded("False", l.clock.Now())
	plan := l.is("a", v1alpha1.PhaseCompleted, "TargetsHealthy")
	healthy("True", "True")
	if plan.Status.Message != "all items are applied and healthy" {
		t.Errorf("it says %q", plan.Status.Message)
	}
	for _, request := range l.cluster.spent() {
		t.Errorf("it cost %s", request)
	}
	l.degraded("True", l.clock.Now())
	l.restart()
	l.is("a", v1alpha1.PhaseCompleted, "not healthy now")
}

// TestDegradedBefore: the time of an operator that was degraded before the write begins with the
// write. If the item fails and the operator recovers later, the plan reports that, and continues
// after it is computed again.
func TestDegradedBefore(t *testing.T) {
	l := newStore(t).newLab(t).usual()
	l.degraded("True", l.clock.Now().Add(-24*time.Hour))
	l.must(l.create("a", take))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress)
	l.clock.SetTime(l.clock.Now().Add(time.Hour))
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseInProgress, "the descheduler's operator is degraded, which fails the item in 10m0s")
	l.clock.SetTime(l.clock.Now().Add(11 * time.Minute))
	l.must(l.pass("a"))
	l.is("a", v1alpha1.PhaseFailed, "the descheduler's operator is degraded: thresholds exclude each other")
	l.degraded("False", l.clock.Now())
	l.is("a", v1alpha1.PhaseFailed, "its target is healthy now", "kubectl penstock plan run a")
	l.degraded("True", l.clock.Now())
	if plan := l.is("a", v1alpha1.PhaseFailed); plan.Status.Items[1].Message != "the descheduler's operator is degraded: thresholds exclude each other" {
		t.Errorf("it says %q", plan.Status.Items[1].Message)
	}
	l.degraded("False", l.clock.Now())
	l.must(l.retry("a"))
	l.is("a", v1alpha1.PhaseCompleted)
}

// TestRestoredFromABackup: a backup has only the spec. A plan that was approved in review waits for
// approval in another cluster. A plan that its own file approves stays approved.
func TestRestoredFromABackup(t *testing.T) {
	store := newStore(t)
	l := store.newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	backup := l.plan("a").Spec
	if backup.Action != v1alpha1.ActionApply || backup.ApprovedPlanHash != l.plan("a").Status.PlanHash {
		t.Fatalf("after its approval spec has %s and hash %q", backup.Action, backup.ApprovedPlanHash)
	}
	restored := func(p *hco.ConfigurationPlan) {
		p.Spec.Action, p.Spec.ApprovedPlanHash, p.Spec.OnConflict = hco.Action(backup.Action), backup.ApprovedPlanHash, hco.ConflictPolicy(backup.OnConflict)
	}
	other := store.newLab(t).usual()
	other.cluster.set(descheduler(), "somebody", "Debug", "spec", "logLevel")
	other.must(other.create("a", restored))
	other.is("a", v1alpha1.PhaseReviewRequired, "spec.approvedPlanHash is "+backup.ApprovedPlanHash)
	other.lookAt(nil, "nobody reviewed what the plan does in this cluster")
	other.must(other.approve("a", other.plan("a").Status.PlanHash))
	other.is("a", v1alpha1.PhaseInProgress)

	same := store.newLab(t).usual()
	same.must(same.create("a", restored))
	same.is("a", v1alpha1.PhaseInProgress)
}

// TestHashOfAnApproval: the end of an approval removes its hash, so that the next plan can be
// approved in any way.
func TestHashOfAnApproval(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	l.must(l.edit("a", action(hco.ActionDryRun)))
	if hash := l.plan("a").Spec.ApprovedPlanHash; hash != "" {
		t.Errorf("the approval was withdrawn, and its hash %s stays", hash)
	}
	l.must(l.edit("a", interval(600)))
	next := l.is("a", v1alpha1.PhaseReviewRequired).Status.PlanHash
	l.must(l.approve("a", next))
	l.is("a", v1alpha1.PhaseCompleted)
	// New options end the approval, and the next approval replaces the hash.
	l.must(l.edit("a", interval(900)))
	l.must(l.approve("a", l.is("a", v1alpha1.PhaseReviewRequired, "nobody approved this plan").Status.PlanHash))
	l.is("a", v1alpha1.PhaseCompleted)
}

// TestImpactOfWhatIsRendered: the review counts the nodes of all pools whose merged configuration
// changes, as the cluster would render it. It names a MachineConfig that overrides the plan.
func TestImpactOfWhatIsRendered(t *testing.T) {
	l := newStore(t).newLab(t).usual()
	l.cluster.alter(configID("99-openshift-machineconfig-worker-psi-karg"), "somebody", func(o map[string]any) {
		labelled(o, map[string]any{"machineconfiguration.openshift.io/role": "worker"})
		o["spec"] = map[string]any{"kernelArguments": []any{"psi=1"}}
	})
	l.cluster.roll("worker", 4)
	l.must(l.create("a", take))
	item := l.is("a", v1alpha1.PhaseReviewRequired).Status.Items[0]
	if item.ImpactSeverity != v1alpha1.ImpactHigh || item.BlastRadius == nil || item.BlastRadius.Nodes != 4 || !item.BlastRadius.Reboot {
		t.Errorf("psi=1 by another MachineConfig: %+v", item)
	}
	l.cluster.alter(psi(), "somebody", func(o map[string]any) {
		labelled(o, map[string]any{"machineconfiguration.openshift.io/role": "worker"})
		o["spec"] = map[string]any{"kernelArguments": []any{"psi=1", "nosmt"}}
	})
	l.cluster.alter(configID("99-worker-tuning"), "somebody", func(o map[string]any) {
		labelled(o, map[string]any{"machineconfiguration.openshift.io/role": "worker"})
		o["spec"] = map[string]any{"kernelArguments": []any{"psi=0"}}
	})
	l.must(l.retry("a"))
	item = l.is("a", v1alpha1.PhaseReviewRequired).Status.Items[0]
	if item.ImpactSeverity != v1alpha1.ImpactHigh || len(item.Notes) != 2 {
		t.Errorf("one of the same name with more, and one that wins: %+v", item)
	}
	l.approved()
	l.cluster.render("worker")
	l.is("a", v1alpha1.PhaseFailed, "MachineConfig 99-worker-tuning sets kernel argument psi to something else")
}

// TestRestoredStore: after the restore of an older snapshot, plans continue from its state. A
// waiting plan keeps waiting. A plan that was executed since, or is in effect, writes nothing. An
// approval in the snapshot counts, even if it was withdrawn since.
func TestRestoredStore(t *testing.T) {
	completed := func(l *lab) {
		l.settle()
		l.cluster.roll("worker", 4)
		l.is("a", v1alpha1.PhaseCompleted)
	}
	store := newStore(t)
	for name, c := range map[string]struct {
		snapshot, want v1alpha1.Phase
		// since holds the acts between the snapshot and the restore.
		since func(l *lab)
		runs  int
	}{
		"before the approval": {v1alpha1.PhaseReviewRequired, v1alpha1.PhaseReviewRequired, func(l *lab) {
			l.approved()
			completed(l)
		}, 0},
		"approved, and withdrawn since": {v1alpha1.PhaseScheduled, v1alpha1.PhaseScheduled, func(l *lab) {
			l.must(l.edit("a", action(hco.ActionDryRun)))
			l.is("a", v1alpha1.PhaseReviewRequired)
		}, 0},
		"in a run":      {v1alpha1.PhaseInProgress, v1alpha1.PhaseCompleted, completed, 1},
		"after the run": {v1alpha1.PhaseCompleted, v1alpha1.PhaseCompleted, completed, 1},
		"drifted since": {v1alpha1.PhaseCompleted, v1alpha1.PhaseDrifted, (*lab).mallory, 1},
		"another run since": {v1alpha1.PhaseCompleted, v1alpha1.PhaseDrifted, func(l *lab) {
			l.must(l.edit("a", interval(600)))
			l.approved()
			completed(l)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t)
			l.reach(c.snapshot)
			snapshot := store.snapshot(l)
			c.since(l)
			l.settle()
			l.cluster.spent()
			store.restore(l, snapshot)
			l.is("a", c.want)
			for _, request := range l.cluster.spent() {
				if !strings.HasPrefix(request, "try ") && !strings.HasPrefix(request, "get ") {
					t.Errorf("a restored store writes: %s", request)
				}
			}
			if runs := len(l.history("a")); runs != c.runs {
				t.Errorf("%d runs, want %d", runs, c.runs)
			}
		})
	}
}
