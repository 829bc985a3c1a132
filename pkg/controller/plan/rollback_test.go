package plan

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// A rollback restores what a run has written. What it was refused to write is as
// somebody else left it, and stays so.
func TestRollbackOfUnwritten(t *testing.T) {
	store := newStore(t)
	for name, c := range map[string]struct {
		reason string
		// fails lets the second item fail.
		fails func(l *lab)
		// older has the run stored as by a version that did not note what it wrote.
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

// What was written is restored, also when the process died before it noted that, and
// the next one is told to stop.
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

// forgetApplied has the runs of a plan as older versions stored them.
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
