package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Yield checks yield rules of every kind that has them.
func Yield(rules []v1alpha1.YieldRule, path *field.Path) field.ErrorList {
	internal := make([]olm.YieldRule, len(rules))
	for i := range rules {
		if err := v1alpha1.Convert_v1alpha1_YieldRule_To_olm_YieldRule(&rules[i], &internal[i], nil); err != nil {
			return field.ErrorList{field.InternalError(path, err)}
		}
	}
	return validateYield(internal, path)
}

func validateYield(rules []olm.YieldRule, path *field.Path) field.ErrorList {
	if len(rules) > v1alpha1.MaxYieldRules {
		return field.ErrorList{tooMany(path, len(rules), fmt.Sprintf("a revision has at most %d yield rules", v1alpha1.MaxYieldRules))}
	}
	var errs field.ErrorList
	for i := range rules {
		rule, at := &rules[i], path.Index(i)
		errs = append(errs, validateGroupKind(&rule.Selector.GroupKind, at.Child("selector", "groupKind"))...)
		fields := at.Child("fields")
		switch n := len(rule.Fields); {
		case n == 0:
			errs = append(errs, field.Required(fields, "a rule without fields has no effect"))
		case n > v1alpha1.MaxYieldRules:
			errs = append(errs, tooMany(fields, n, fmt.Sprintf("a yield rule has at most %d fields", v1alpha1.MaxYieldRules)))
			continue
		}
		for j, text := range rule.Fields {
			if _, err := manifest.ParseFieldPath(text); err != nil {
				errs = append(errs, field.Invalid(fields.Index(j), text, err.Error()))
			}
		}
	}
	return errs
}
