package metrics

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

type planFixture struct {
	client.Reader
	fixture
	items []hcov1alpha1.ConfigurationPlan
}

func startPlans(t *testing.T, registry *prometheus.Registry, plans ...*hcov1alpha1.ConfigurationPlan) *planFixture {
	t.Helper()
	f := &planFixture{fixture: fixture{registry: registry, clock: clocktesting.NewFakePassiveClock(noon())}}
	if err := AddPlans(PlanOptions{Registry: registry, Informer: f, Reader: f, Clock: f.clock}); err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		f.items = append(f.items, *p)
		f.handler.OnAdd(p, true)
	}
	return f
}

func (f *planFixture) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*hcov1alpha1.ConfigurationPlanList).Items = f.items
	return f.broken
}

func (f *planFixture) put(p *hcov1alpha1.ConfigurationPlan) {
	i := slices.IndexFunc(f.items, func(old hcov1alpha1.ConfigurationPlan) bool { return old.Name == p.Name })
	if i < 0 {
		f.items = append(f.items, *p)
		f.handler.OnAdd(p, false)
		return
	}
	old := f.items[i]
	f.items[i] = *p
	f.handler.OnUpdate(&old, p)
}

// plan returns a plan with one condition, and one item for each state.
func plan(name string, phase hcov1alpha1.Phase, states ...hcov1alpha1.ItemState) *hcov1alpha1.ConfigurationPlan {
	p := &hcov1alpha1.ConfigurationPlan{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	drafted := metav1.NewTime(noon().Add(-time.Hour))
	p.Spec.Profile, p.Status.Phase, p.Status.DraftedAt = hcov1alpha1.ProfileLoadAwareRebalancing, phase, &drafted
	p.Status.Conditions = []metav1.Condition{{Type: hcov1alpha1.ConditionDrifted, Status: metav1.ConditionFalse}}
	if phase == hcov1alpha1.PhaseDrifted {
		p.Status.Conditions[0].Status = metav1.ConditionTrue
	}
	for _, state := range append(states, hcov1alpha1.ItemPending) {
		p.Status.Items = append(p.Status.Items, hcov1alpha1.PlanItem{State: state})
	}
	return p
}

func TestPlans(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		plan   *hcov1alpha1.ConfigurationPlan
		want   []string
	}{
		"new": {
			reason: "a plan that nobody has looked at is Pending", plan: &hcov1alpha1.ConfigurationPlan{ObjectMeta: metav1.ObjectMeta{Name: "p"}},
			want: []string{
				"configurationplan_phase{name=p,phase=Pending,profile=} 1",
				"configurationplan_review_seconds{name=p,profile=} 0",
			},
		},
		"under review": {
			reason: "it waits since it was computed", plan: plan("p", hcov1alpha1.PhaseReviewRequired),
			want: []string{
				"configurationplan_condition{condition=Drifted,name=p,profile=LoadAwareRebalancing,status=False} 1",
				"configurationplan_items{name=p,profile=LoadAwareRebalancing,state=Pending} 1",
				"configurationplan_phase{name=p,phase=ReviewRequired,profile=LoadAwareRebalancing} 1",
				"configurationplan_review_seconds{name=p,profile=LoadAwareRebalancing} 3600",
			},
		},
		"in progress": {
			reason: "items are counted by state, and nobody waits for an approval", plan: plan("p", hcov1alpha1.PhaseInProgress, hcov1alpha1.ItemCompleted, hcov1alpha1.ItemPending),
			want: []string{
				"configurationplan_condition{condition=Drifted,name=p,profile=LoadAwareRebalancing,status=False} 1",
				"configurationplan_items{name=p,profile=LoadAwareRebalancing,state=Completed} 1",
				"configurationplan_items{name=p,profile=LoadAwareRebalancing,state=Pending} 2",
				"configurationplan_phase{name=p,phase=InProgress,profile=LoadAwareRebalancing} 1",
				"configurationplan_review_seconds{name=p,profile=LoadAwareRebalancing} 0",
			},
		},
		"drifted": {
			reason: "it is told in a term that begins with it, too", plan: plan("p", hcov1alpha1.PhaseDrifted),
			want: []string{
				"configurationplan_condition{condition=Drifted,name=p,profile=LoadAwareRebalancing,status=True} 1",
				"configurationplan_items{name=p,profile=LoadAwareRebalancing,state=Pending} 1",
				"configurationplan_phase{name=p,phase=Drifted,profile=LoadAwareRebalancing} 1",
				"configurationplan_review_seconds{name=p,profile=LoadAwareRebalancing} 0",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := startPlans(t, prometheus.NewPedanticRegistry(), c.plan).series(t, "configurationplan")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestPlanEntries(t *testing.T) {
	f := startPlans(t, prometheus.NewPedanticRegistry(), plan("a", hcov1alpha1.PhaseCompleted))
	if got := f.series(t, catalogue.PlanEntries); len(got) > 0 {
		t.Errorf("what was there before the term is no entry: %v", got)
	}
	f.put(plan("a", hcov1alpha1.PhaseDrifted))
	f.put(plan("a", hcov1alpha1.PhaseDrifted, hcov1alpha1.ItemFailed)) // unchanged
	f.put(plan("a", hcov1alpha1.PhaseCompleted))
	f.put(plan("b", ""))
	f.put(plan("b", hcov1alpha1.PhaseDrifted))
	again := plan("a", hcov1alpha1.PhaseCompleted)
	again.UID = "another"
	f.put(again)
	f.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: again})
	want := []string{
		"configurationplan_phase_entries_total{phase=Completed,profile=LoadAwareRebalancing} 2",
		"configurationplan_phase_entries_total{phase=Drifted,profile=LoadAwareRebalancing} 2",
	}
	if diff := cmp.Diff(want, f.series(t, catalogue.PlanEntries)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlansNotKnown(t *testing.T) {
	f := startPlans(t, prometheus.NewPedanticRegistry(), plan("a", hcov1alpha1.PhaseCompleted))
	f.unsynced = true
	if got := f.series(t, "configurationplan"); len(got) > 0 {
		t.Errorf("an empty cache tells %v", got)
	}
	f.unsynced, f.broken = false, errors.New("the cache is closed")
	if _, err := f.registry.Gather(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("an error of the cache is told as %v", err)
	}
}
