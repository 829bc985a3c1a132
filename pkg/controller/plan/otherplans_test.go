package plan

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// dials is a second profile, which sets a field of the first knob.
type dials struct {
	knobs
	field string
	value int64
}

func (dials) Name() v1alpha1.ProfileName { return "Dials" }

func (d dials) Items(facts profile.Facts, _ *v1alpha1.PlanOptions) ([]profile.Item, error) {
	items, err := knobs{n: 1}.Items(facts, nil)
	items[0].Name, items[0].Object["spec"] = "dial", map[string]any{d.field: d.value}
	return items, err
}

func ofDials(p *hco.ConfigurationPlan) { p.Spec.Profile = "Dials" }

func (s *storeOf) rivalry(t *testing.T, d dials) *lab {
	return s.newLab(t, knobs{n: 1}, d)
}

// TestRivalsInReview: two plans that set a field to different values are refused before either is
// approved, and each names the other. If one plan is changed, the other continues.
func TestRivalsInReview(t *testing.T) {
	store := newStore(t)
	for name, give := range map[string]func(l *lab) error{
		"ignored": func(l *lab) error { return l.edit("b", action(hco.ActionIgnore)) },
		"deleted": func(l *lab) error { return l.remove("b") },
		"changed": func(l *lab) error { return l.edit("a", interval(70)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := store.rivalry(t, dials{field: "value", value: 70})
			l.must(l.create("a", take))
			l.is("a", v1alpha1.PhaseReviewRequired)
			l.must(l.create("b", take, ofDials))
			b := l.is("b", v1alpha1.PhaseReviewRequired, `plan "a" of profile LoadAwareRebalancing, which is ReviewRequired, sets .spec.value of Knob knob-00 to other values`, "FieldConflict")
			a := l.is("a", v1alpha1.PhaseReviewRequired, `plan "b" of profile Dials, which is ReviewRequired, sets .spec.value of Knob knob-00 to other values; only one of them can be executed`, "FieldConflict")
			for name, plan := range map[string]*v1alpha1.ConfigurationPlan{"a": a, "b": b} {
				if err := l.approve(name, plan.Status.PlanHash); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "sets .spec.value") {
					t.Errorf("plan %s is approved: %v", name, err)
				}
				l.must(l.enforce(name)) // an approval by spec is accepted, but has no effect
				l.is(name, v1alpha1.PhaseReviewRequired, "FieldConflict")
			}
			if l.cluster.value(knob(0), "spec", "value") != nil {
				t.Error("one of the plans was executed")
			}
			for _, name := range l.plans() {
				l.must(l.edit(name, action(hco.ActionDryRun)))
				l.settle()
			}
			l.must(give(l))
			_ = l.pass("b") // also after it was deleted
			plan := l.is("a", v1alpha1.PhaseReviewRequired, "ReviewRequired")
			l.must(l.approve("a", plan.Status.PlanHash))
			l.is("a", v1alpha1.PhaseCompleted)
		})
	}
}

// TestRivalsOfWhatIsInEffect: a plan in effect stays in effect. onConflict: Take applies to fields
// of other managers, not of other plans.
func TestRivalsOfWhatIsInEffect(t *testing.T) {
	l := newStore(t).rivalry(t, dials{field: "value", value: 70})
	l.must(l.create("a", take, action(hco.ActionApply)))
	l.is("a", v1alpha1.PhaseCompleted)
	l.must(l.create("b", take, ofDials, action(hco.ActionApply)))
	l.is("b", v1alpha1.PhaseReviewRequired, `plan "a" of profile LoadAwareRebalancing, which is Completed, sets .spec.value`, "FieldConflict")
	l.is("a", v1alpha1.PhaseCompleted)
	l.must(l.edit("a", action(hco.ActionIgnore)))
	l.is("b", v1alpha1.PhaseCompleted)
	if got := l.cluster.value(knob(0), "spec", "value"); got != int64(70) {
		t.Errorf("the value is %v", got)
	}
}

// TestNoRivals: other fields of one object, and the same value of one field, are no conflict.
func TestNoRivals(t *testing.T) {
	store := newStore(t)
	for name, d := range map[string]dials{"other field": {field: "colour", value: 70}, "same value": {field: "value", value: 1}} {
		t.Run(name, func(t *testing.T) {
			l := store.rivalry(t, d)
			l.must(l.create("a", action(hco.ActionApply)))
			l.is("a", v1alpha1.PhaseCompleted)
			l.must(l.create("b", take, ofDials, action(hco.ActionApply)))
			l.is("b", v1alpha1.PhaseCompleted)
			l.is("a", v1alpha1.PhaseCompleted)
		})
	}
}

// TestRivalsOfAScheduledPlan: a user who may create plans but not approve them cannot delay an
// approved plan.
func TestRivalsOfAScheduledPlan(t *testing.T) {
	l := newStore(t).rivalry(t, dials{field: "value", value: 70})
	l.must(l.create("a", nightly))
	l.approved()
	l.is("a", v1alpha1.PhaseScheduled)
	l.must(l.create("b", ofDials))
	l.is("b", v1alpha1.PhaseReviewRequired, `plan "a" of profile LoadAwareRebalancing, which is Scheduled`, "FieldConflict")
	l.is("a", v1alpha1.PhaseScheduled, "WaitingForWindow")
	l.clock.SetTime(l.tonight())
	l.is("a", v1alpha1.PhaseCompleted)
}

// TestNeighboursAreLookedAt: a change of a plan enqueues only the plans that share targets with it.
func TestNeighboursAreLookedAt(t *testing.T) {
	l := newStore(t).rivalry(t, dials{field: "value", value: 70})
	l.must(l.create("a", take))
	l.is("a", v1alpha1.PhaseReviewRequired)
	if got := l.loop.neighboursOf(t.Context(), l.plan("a")); len(got) != 0 {
		t.Errorf("alone, it has the neighbours %v", got)
	}
	l.must(l.create("b", take, ofDials))
	b := l.is("b", v1alpha1.PhaseReviewRequired)
	for _, change := range []struct {
		of   *v1alpha1.ConfigurationPlan
		want string
	}{{l.plan("a"), "b"}, {b, "a"}} {
		if got := l.loop.neighboursOf(t.Context(), change.of); len(got) != 1 || got[0].Name != change.want {
			t.Errorf("a change of %s has %v looked at, want %s", change.of.Name, got, change.want)
		}
	}
	l.must(l.remove("b"))
	if got := l.loop.neighboursOf(t.Context(), b); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("the end of b has %v looked at, want a", got)
	}
}
