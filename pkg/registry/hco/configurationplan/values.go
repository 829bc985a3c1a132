package configurationplan

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

// defined returns the user-defined profile of a plan, or nil.
func (s *strategy) defined(ctx context.Context, plan *hco.ConfigurationPlan) (*cel.Profile, error) {
	if !hco.IsOwn(plan.Spec.Profile) {
		return nil, nil
	}
	return s.definitions(ctx, string(plan.Spec.Profile))
}

// validateValues returns the errors in the options of a user-defined profile. A plan may exist
// before its definition; then it is not validated.
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

// unknownProfile warns of a plan whose profile does not exist, perhaps because of a spelling error.
func (s *strategy) unknownProfile(ctx context.Context, plan *hco.ConfigurationPlan) []string {
	if !hco.IsOwn(plan.Spec.Profile) {
		return nil
	}
	if found, err := s.defined(ctx, plan); err != nil || found != nil {
		return nil
	}
	return []string{fmt.Sprintf("there is no ConfigurationProfileDefinition %s yet: the plan waits for it; kubectl get configprofile lists the existing profiles", plan.Spec.Profile)}
}
