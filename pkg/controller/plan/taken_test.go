package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// TestTakenSinceReview: a manager that applies exactly the present value owns the field from then
// on, but the value does not change. The review did not show that this manager would lose the
// field, so the plan does not take it.
func TestTakenSinceReview(t *testing.T) {
	store := newStore(t)
	for name, c := range map[string]struct {
		reason string
		// owned is true if another manager had the value at review.
		owned  bool
		action spec
		// then is the content that another client applies after the review.
		then  map[string]any
		phase v1alpha1.Phase
		says  []string
	}{
		"of somebody": {
			"the reviewed owner loses it, and argocd does, too", true, take, map[string]any{"value": int64(7)},
			v1alpha1.PhaseFailed, []string{"PlanStale", "argocd", ".spec.value", "retry"}},
		"of nobody": {
			"nothing was to be taken, so Block had nothing to stop", false, func(*hco.ConfigurationPlan) {}, map[string]any{"value": int64(7)},
			v1alpha1.PhaseFailed, []string{"PlanStale", "argocd", ".spec.value", "retry"}},
		"of somebody, another field": {
			"that is not touched", true, take, map[string]any{"other": "theirs"}, v1alpha1.PhaseCompleted, nil},
		"of nobody, another field": {
			"that is not touched", false, func(*hco.ConfigurationPlan) {}, map[string]any{"other": "theirs"}, v1alpha1.PhaseCompleted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t, knobs{n: 1})
			l.cluster.set(knob(0), "kubectl-edit", "theirs", "spec", "other")
			before := l.cluster.objects[knob(0)].GetManagedFields()
			l.cluster.set(knob(0), "kubectl-edit", int64(7), "spec", "value")
			if !c.owned {
				l.cluster.objects[knob(0)].SetManagedFields(before)
			}
			l.must(l.create("a", c.action))
			plan := l.is("a", v1alpha1.PhaseReviewRequired)
			if takes := len(plan.Status.Items[0].Takes) > 0; takes != c.owned {
				t.Fatalf("the plan takes %+v", plan.Status.Items[0].Takes)
			}
			l.cluster.applies(knob(0), "argocd", c.then)
			l.cluster.spent()
			l.approved()
			l.is("a", c.phase, c.says...)
			spent := l.cluster.spent()
			if c.phase == v1alpha1.PhaseCompleted {
				if diff := cmp.Diff([]string{"get knob-00", "apply knob-00", "get knob-00"}, spent); diff != "" {
					t.Errorf("%s: requests (-want +got):\n%s", c.reason, diff)
				}
				return
			}
			if value := l.cluster.value(knob(0), "spec", "value"); value != int64(7) {
				t.Errorf("%s: the value is %v", c.reason, value)
			}
			// One command shows the present owners.
			l.must(l.retry("a"))
			plan = l.is("a", v1alpha1.PhaseReviewRequired)
			takes := plan.Status.Items[0].Takes
			if !slices.ContainsFunc(takes, func(one v1alpha1.TakenFields) bool { return one.Manager == "argocd" }) {
				t.Errorf("%s: refreshed, the plan takes %+v", c.reason, takes)
			}
		})
	}
}

// TestTakenSinceReviewBeforeFirstWrite: the first item may reboot nodes. It is not written if the
// plan would fail at the second item, because another manager now owns a field of it.
func TestTakenSinceReviewBeforeFirstWrite(t *testing.T) {
	l := newStore(t).newLab(t, knobs{n: 2})
	l.cluster.set(knob(1), "kubectl-edit", int64(7), "spec", "value")
	l.must(l.create("a", take))
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.cluster.applies(knob(1), "argocd", map[string]any{"value": int64(7)})
	l.cluster.spent()
	l.approved()
	plan := l.is("a", v1alpha1.PhaseFailed, "PlanStale", "argocd has .spec.value by now", "nothing was applied", "retry")
	if diff := cmp.Diff([]string{"try knob-01"}, l.cluster.spent()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	states := []v1alpha1.ItemState{plan.Status.Items[0].State, plan.Status.Items[1].State}
	if diff := cmp.Diff([]v1alpha1.ItemState{v1alpha1.ItemPending, v1alpha1.ItemFailed}, states); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}
