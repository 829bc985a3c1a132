package governance

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// InEffect reports whether a plan's profile is in effect: the plan is Completed for its present
// spec, its targets are healthy, and it did not restore an earlier state.
func InEffect(plan *v1alpha1.ConfigurationPlan) bool {
	return plan.Status.Phase == v1alpha1.PhaseCompleted && plan.Status.ObservedGeneration == plan.Generation &&
		plan.Spec.RestoreRun == 0 && plan.DeletionTimestamp == nil && !meta.IsStatusConditionFalse(plan.Status.Conditions, v1alpha1.ConditionHealthy)
}

// Unmet describes what must happen before all required profiles of a plan are in effect; empty if
// they are. The parameter all lists every plan.
func Unmet(plan *v1alpha1.ConfigurationPlan, all []v1alpha1.ConfigurationPlan) string {
	var said []string
	for _, name := range plan.Spec.Requires {
		of := plansOf(name, all)
		if slices.ContainsFunc(of, func(other *v1alpha1.ConfigurationPlan) bool { return InEffect(other) }) {
			continue
		}
		text := fmt.Sprintf("profile %s is in effect, %s", name, found(of))
		if requiresBack(of, plan.Spec.Profile, all, nil) {
			text += fmt.Sprintf("; that requires profile %s in turn, so neither begins: change spec.requires of one", plan.Spec.Profile)
		}
		said = append(said, text)
	}
	return strings.Join(said, ", and ")
}

// found describes the plan of a profile that is not in effect. Of several plans, the plan that
// holds the profile counts.
func found(plans []*v1alpha1.ConfigurationPlan) string {
	if len(plans) == 0 {
		return "for which there is no plan"
	}
	plan := plans[0]
	for _, other := range plans {
		if Active(other.Status.Phase) {
			plan = other
			break
		}
	}
	text := fmt.Sprintf("whose plan %q is %s", plan.Name, v1alpha1.PhaseText(string(phaseOf(plan)), plan.Spec.RestoreRun))
	if meta.IsStatusConditionFalse(plan.Status.Conditions, v1alpha1.ConditionHealthy) {
		text += ", and a target of it is not healthy"
	}
	if plan.Status.ObservedGeneration != plan.Generation {
		text += " and has changed since"
	}
	return text
}

// requiresBack reports whether plans that are not in effect require a profile, directly or through
// other profiles. seen are the profiles that were visited.
func requiresBack(plans []*v1alpha1.ConfigurationPlan, profile v1alpha1.ProfileName, all []v1alpha1.ConfigurationPlan, seen []v1alpha1.ProfileName) bool {
	for _, plan := range plans {
		for _, next := range plan.Spec.Requires {
			switch {
			case InEffect(plan) || plan.Spec.Action == v1alpha1.ActionIgnore || slices.Contains(seen, next):
			case next == profile:
				return true
			case requiresBack(plansOf(next, all), profile, all, append(slices.Clone(seen), next)):
				return true
			}
		}
	}
	return false
}

func plansOf(name v1alpha1.ProfileName, all []v1alpha1.ConfigurationPlan) []*v1alpha1.ConfigurationPlan {
	var of []*v1alpha1.ConfigurationPlan
	for i := range all {
		if all[i].Spec.Profile == name {
			of = append(of, &all[i])
		}
	}
	return of
}

func phaseOf(plan *v1alpha1.ConfigurationPlan) v1alpha1.Phase {
	if plan.Status.Phase == "" {
		return v1alpha1.PhasePending
	}
	return plan.Status.Phase
}

// required returns the profiles that a plan requires as one text, sorted because their order has no
// meaning.
func required(spec v1alpha1.ConfigurationPlanSpec) string {
	names := make([]string, len(spec.Requires))
	for i, name := range spec.Requires {
		names[i] = string(name)
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}
