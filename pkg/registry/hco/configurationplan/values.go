package configurationplan

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

// defined is the profile that users define and a plan is of, nil for any other.
func (s *strategy) defined(ctx context.Context, plan *hco.ConfigurationPlan) (*cel.Profile, error) {
	if !hco.IsOwn(plan.Spec.Profile) {
		return nil, nil
	}
	return s.definitions(ctx, string(plan.Spec.Profile))
}

// validateValues judges the options of a profile that users define, if it is there by now: a
// plan may come before its definition.
func (s *strategy) validateValues(ctx context.Context, plan *hco.ConfigurationPlan) field.ErrorList {
	path := field.NewPath("spec", "options", "values")
	found, err := s.defined(ctx, plan)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	if found == nil {
		return nil
	}
	var values *v1alpha1.JSONObject
	if options := plan.Spec.Options; options != nil && options.Values != nil {
		values = &v1alpha1.JSONObject{Raw: options.Values.Raw}
	}
	_, errs := found.Options(values, path)
	return errs
}

// unknownProfile warns of a plan of a profile that is not there, which may be a misspelt one.
func (s *strategy) unknownProfile(ctx context.Context, plan *hco.ConfigurationPlan) []string {
	if !hco.IsOwn(plan.Spec.Profile) {
		return nil
	}
	if found, err := s.defined(ctx, plan); err != nil || found != nil {
		return nil
	}
	return []string{fmt.Sprintf("there is no ConfigurationProfileDefinition %s yet: the plan waits for it; kubectl get configprofile lists the existing profiles", plan.Spec.Profile)}
}
