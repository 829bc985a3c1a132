package plan

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestRollbackOfUnwritten: a rollback restores only targets that a run has written. Targets whose
// write was refused keep the values of other writers.
func TestRollbackOfUnwritten(t *testing.T) {
	store := newStore(t)
	for name, c := range map[string]struct {
		reason string
		fails  func(l *lab)
		// older stores the run as an older version did, without a record of written targets.
		older bool
		want  []string
	}{
		"refused": {
			"its target was never written", func(l *lab) { l.refusing(descheduler()) }, false, []string{"restore-enable-psi-metrics"}},
		"stale": {
			"its target was never written", func(l *lab) { l.cluster.set(descheduler(), "mallory", "Debug", "spec", "logLevel") }, false,
			[]string{"restore-enable-psi-metrics"}},
		"refused, by an older version": {
			"what was started may have been written, and a person looks at it", func(l *lab) { l.refusing(descheduler()) }, true,
			[]string{"restore-configure-descheduler", "restore-enable-psi-metrics"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t)
			l.reach(v1alpha1.PhaseInProgress)
			c.fails(l)
			l.cluster.roll("worker", 4)
			l.is("a", v1alpha1.PhaseFailed)
			l.cluster.refuse = nil
			l.cluster.set(descheduler(), "admin", []any{"LongLifecycle"}, "spec", "profiles")
			if c.older {
				l.forgetApplied("a")
			}
			l.must(l.rollback("a", 1))
			plan := l.is("a", v1alpha1.PhaseReviewRequired)
			var got []string
			for _, item := range plan.Status.Items {
				got = append(got, item.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: items (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestRollbackOfInterrupted: written targets are restored even if the process died before it
// recorded the write, and the next process must stop the run.
func TestRollbackOfInterrupted(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired)
	l.cluster.written = func(manifest.Ref, []byte, *unstructured.Unstructured) { l.outage = errCrash }
	l.approved()
	l.settle()
	l.outage = nil
	if plan := l.plan("a"); plan.Status.Items[0].Applied || l.cluster.value(psi(), "spec") == nil {
		t.Fatalf("it is not between the write and the note: %+v", plan.Status.Items[0])
	}
	l.restart()
	l.must(l.edit("a", action(hco.ActionDryRun)))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.must(l.rollback("a", 1))
	l.is("a", v1alpha1.PhaseReviewRequired, "restore-enable-psi-metrics")
}

// forgetApplied changes the runs of a plan to the form of older versions.
func (l *lab) forgetApplied(name string) {
	l.t.Helper()
	rows, err := l.runs.List(l.t.Context(), name)
	l.must(err)
	for _, row := range rows {
		var stored v1alpha1.PlanRun
		l.must(json.Unmarshal(row.Body, &stored))
		for i := range stored.Items {
			stored.Items[i].Applied = nil
		}
		row.Body, err = json.Marshal(stored)
		l.must(err)
		l.must(l.runs.Put(l.t.Context(), name, row))
	}
}

// TestRollbackOfRollback: a rollback removes the fields that had no value before the run. A
// rollback of the rollback restores them, and the objects of the first run.
func TestRollbackOfRollback(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	after := l.cluster.value(descheduler(), "spec")
	limits := l.cluster.value(descheduler(), "spec", "evictionLimits")
	if limits == nil {
		t.Fatal("run 1 sets limits")
	}
	l.must(l.rollback("a", 0))
	l.complete()
	if l.cluster.value(descheduler(), "spec", "evictionLimits") != nil || l.cluster.value(psi(), "spec") != nil {
		t.Fatalf("run 2 removes what run 1 added: %v", l.cluster.value(descheduler(), "spec"))
	}
	l.must(l.rollback("a", 0))
	plan := l.is("a", v1alpha1.PhaseReviewRequired, "; restore-enable-psi-metrics", "; restore-configure-descheduler")
	if !strings.Contains(plan.Status.Diff, "evictionLimits") || !strings.Contains(plan.Status.Diff, "+  mode:") {
		t.Errorf("the review lacks fields that come back: %s", plan.Status.Diff)
	}
	l.complete()
	if diff := cmp.Diff(after, l.cluster.value(descheduler(), "spec")); diff != "" {
		t.Errorf("not as it was after run 1 (-want +got):\n%s", diff)
	}
	if l.cluster.value(psi(), "spec") == nil {
		t.Error("what run 2 deleted is not there again")
	}
	// Back again, to the state before run 3.
	l.must(l.rollback("a", 0))
	l.complete()
	if l.cluster.value(descheduler(), "spec", "evictionLimits") != nil || l.cluster.value(psi(), "spec") != nil {
		t.Errorf("run 4 removes what run 3 added: %v", l.cluster.value(descheduler(), "spec"))
	}
}

// TestRestoreEnds: a restoration happens once. Each later computation of the plan leads to the
// state of the profile, as the file of the plan does.
func TestRestoreEnds(t *testing.T) {
	store := newStore(t)
	for name, c := range map[string]struct {
		reason string
		do     func(l *lab) error
		// early is true if the plan waits for the approval of the rollback.
		early bool
		ends  bool
	}{
		"retry":            {"somebody asks for the plan", func(l *lab) error { return l.retry("a") }, false, true},
		"dry run":          {"its file is applied again", func(l *lab) error { return l.edit("a", action(hco.ActionDryRun)) }, false, true},
		"options":          {"options are for what the profile says", func(l *lab) error { return l.edit("a", interval(120)) }, false, true},
		"retry, early":     {"the undo is not done", func(l *lab) error { return l.retry("a") }, true, false},
		"options, early":   {"options are for what the profile says", func(l *lab) error { return l.edit("a", interval(120)) }, true, true},
		"set aside, early": {"no undo is wanted", func(l *lab) error { return l.edit("a", action(hco.ActionIgnore)) }, true, true},
		"a limit":          {"it says nothing of what is wanted", func(l *lab) error { return l.edit("a", within(time.Hour)) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t)
			l.reach(v1alpha1.PhaseCompleted)
			l.must(l.rollback("a", 0))
			if l.is("a", v1alpha1.PhaseReviewRequired); !c.early {
				l.complete()
				l.is("a", v1alpha1.PhaseCompleted, "what there was before run 1 is restored")
			}
			l.must(c.do(l))
			l.settle()
			if plan := l.plan("a"); (plan.Spec.RestoreRun == 0) != c.ends {
				t.Errorf("%s: restoreRun is %d", c.reason, plan.Spec.RestoreRun)
			} else if c.ends && plan.Spec.Action != v1alpha1.ActionIgnore && !c.early && plan.Status.Items[0].Name != "enable-psi-metrics" {
				t.Errorf("%s: it is not of the profile: %s %+v", c.reason, plan.Status.Phase, plan.Status.Items)
			}
			if runs := l.history("a"); !c.early && (runs[0].RestoreRun != 1 || runs[1].RestoreRun != 0) {
				t.Errorf("the history does not tell the undo: %d, %d", runs[0].RestoreRun, runs[1].RestoreRun)
			}
		})
	}
}

// TestStoppedWhileWaiting: a run is stopped while its last item waits. The target stays as planned,
// and status reports that Penstock no longer waits for its health.
func TestStoppedWhileWaiting(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	l.cluster.erase(psi())
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseDrifted, "to enforce the plan, kubectl penstock plan run a, or set spec.action to DryRun")
	l.must(l.retry("a"))
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress)
	l.must(l.edit("a", action(hco.ActionDryRun)))
	l.is("a", v1alpha1.PhaseCompleted, "run 2 was stopped, and Penstock no longer waits until enable-psi-metrics is healthy")
}
