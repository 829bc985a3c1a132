package plan

import (
	"encoding/json"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// TestDeletedWhileNobodyLeads: a plan that is deleted while no replica leads causes no event. The
// next leader still releases its profile and ends its run.
func TestDeletedWhileNobodyLeads(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	l.must(l.remove("a"))
	l.restart()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	l.must(l.loop.sweep(t.Context(), queue))
	request, _ := queue.Get()
	if _, err := l.loop.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if l.claimed() != "" {
		t.Errorf("%q has the profile", l.claimed())
	}
	rows, err := l.loop.Runs.List(t.Context(), "a")
	l.must(err)
	var row v1alpha1.PlanRun
	l.must(json.Unmarshal(rows[0].Body, &row))
	if row.EndedAt == nil || row.Outcome != v1alpha1.PhaseIgnored {
		t.Errorf("its run: %+v", row)
	}
}
