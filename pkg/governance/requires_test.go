package governance_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
)

// planOf returns a plan in a phase. Its name is the name of the profile.
func planOf(profile v1alpha1.ProfileName, phase v1alpha1.Phase, requires ...v1alpha1.ProfileName) v1alpha1.ConfigurationPlan {
	return v1alpha1.ConfigurationPlan{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(string(profile)), Generation: 2},
		Spec:       v1alpha1.ConfigurationPlanSpec{Profile: profile, Requires: requires},
		Status:     v1alpha1.ConfigurationPlanStatus{Phase: phase, ObservedGeneration: 2},
	}
}

func TestUnmet(t *testing.T) {
	with := func(plan v1alpha1.ConfigurationPlan, change func(*v1alpha1.ConfigurationPlan)) v1alpha1.ConfigurationPlan {
		change(&plan)
		return plan
	}
	for name, c := range map[string]struct {
		reason   string
		requires []v1alpha1.ProfileName
		others   []v1alpha1.ConfigurationPlan
		want     string
	}{
		"nothing":   {reason: "it requires nothing"},
		"completed": {"", []v1alpha1.ProfileName{"B"}, []v1alpha1.ConfigurationPlan{planOf("B", v1alpha1.PhaseCompleted)}, ""},
		"no plan":   {"", []v1alpha1.ProfileName{"B"}, nil, "profile B is in effect, for which there is no plan"},
		"new plan":  {"", []v1alpha1.ProfileName{"B"}, []v1alpha1.ConfigurationPlan{planOf("B", "")}, `profile B is in effect, whose plan "b" is Pending`},
		"errors": {"what failed is not in effect", []v1alpha1.ProfileName{"B"}, []v1alpha1.ConfigurationPlan{planOf("B", v1alpha1.PhaseCompletedWithErrors)},
			`profile B is in effect, whose plan "b" is CompletedWithErrors`},
		"restored": {"it is Completed, and the profile is not in effect", []v1alpha1.ProfileName{"B"},
			[]v1alpha1.ConfigurationPlan{with(planOf("B", v1alpha1.PhaseCompleted), func(p *v1alpha1.ConfigurationPlan) { p.Spec.RestoreRun = 3 })},
			`profile B is in effect, whose plan "b" is Completed (undo of run 3)`},
		"changed since": {"its phase is about another spec", []v1alpha1.ProfileName{"B"},
			[]v1alpha1.ConfigurationPlan{with(planOf("B", v1alpha1.PhaseCompleted), func(p *v1alpha1.ConfigurationPlan) { p.Generation = 3 })},
			`profile B is in effect, whose plan "b" is Completed and has changed since`},
		"being deleted": {"", []v1alpha1.ProfileName{"B"},
			[]v1alpha1.ConfigurationPlan{with(planOf("B", v1alpha1.PhaseCompleted), func(p *v1alpha1.ConfigurationPlan) { p.DeletionTimestamp = &metav1.Time{} })},
			`profile B is in effect, whose plan "b" is Completed`},
		"locked out": {"the plan that has the profile counts, and not the one that wanted it", []v1alpha1.ProfileName{"B"},
			[]v1alpha1.ConfigurationPlan{with(planOf("B", v1alpha1.PhaseFailed), func(p *v1alpha1.ConfigurationPlan) { p.Name = "a" }), planOf("B", v1alpha1.PhaseInProgress)},
			`profile B is in effect, whose plan "b" is InProgress`},
		"two": {"all of them count", []v1alpha1.ProfileName{"B", "C", "D"},
			[]v1alpha1.ConfigurationPlan{planOf("B", v1alpha1.PhaseDrifted), planOf("C", v1alpha1.PhaseCompleted)},
			`profile B is in effect, whose plan "b" is Drifted, and profile D is in effect, for which there is no plan`},
		"circle": {"they would wait for each other without a word", []v1alpha1.ProfileName{"B"},
			[]v1alpha1.ConfigurationPlan{planOf("B", v1alpha1.PhaseScheduled, "C"), planOf("C", v1alpha1.PhaseScheduled, "C", "A")},
			`profile B is in effect, whose plan "b" is Scheduled; that requires profile A in turn, so neither begins: change spec.requires of one`},
		"no circle": {"what is in effect waits for nothing", []v1alpha1.ProfileName{"B"},
			[]v1alpha1.ConfigurationPlan{planOf("B", v1alpha1.PhaseScheduled, "C"), planOf("C", v1alpha1.PhaseCompleted, "A")},
			`profile B is in effect, whose plan "b" is Scheduled`},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOf("A", v1alpha1.PhaseScheduled, c.requires...)
			if got := governance.Unmet(&plan, append(c.others, plan)); got != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", c.reason, got, c.want)
			}
		})
	}
}
