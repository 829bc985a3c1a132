package validation

import (
	"context"
	"fmt"
	"iter"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// ValidateExpressions checks the CEL expressions of a revision with check, which compiles an
// expression. It is separate from ValidateRevision because only the rollout engine knows CEL, and
// because updates need no compilation: a revision stays valid when a newer release has other
// functions.
//
// It runs before the privilege check of the requester. So call it only if ValidateRevision, which
// bounds the text, returned no error. It compiles each text once, and stops when ctx ends or after
// maxWrongExpressions invalid expressions.
func ValidateExpressions(ctx context.Context, revision *olm.ClusterExtensionRevision, check func(expression string) error) field.ErrorList {
	var errs field.ErrorList
	found := map[string]error{}
	wrong := 0
	for path, expression := range expressions(revision.Spec.ProgressionProbes, field.NewPath("spec", "progressionProbes")) {
		if err := ctx.Err(); err != nil {
			return append(errs, field.InternalError(path, fmt.Errorf("compiling the expression: %w", err)))
		}
		err, known := found[expression]
		if !known {
			if wrong == maxWrongExpressions {
				return append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("%d expressions are wrong, those from here on were not looked at", wrong)))
			}
			if err = check(expression); err != nil {
				wrong++
			}
			found[expression] = err
		}
		if err != nil {
			errs = append(errs, field.Invalid(path, expression, err.Error()))
		}
	}
	return errs
}

// maxWrongExpressions bounds the reported invalid expressions, which may take longer to compile
// than valid expressions.
const maxWrongExpressions = 10

// expressions yields the CEL expressions of probes with their field paths.
func expressions(probes []olm.ProgressionProbe, path *field.Path) iter.Seq2[*field.Path, string] {
	return func(yield func(*field.Path, string) bool) {
		for i, probe := range probes {
			for j, assertion := range probe.Assertions {
				if assertion.CEL == nil || assertion.CEL.Expression == "" {
					continue
				}
				if !yield(path.Index(i).Child("assertions").Index(j).Child("cel", "expression"), assertion.CEL.Expression) {
					return
				}
			}
		}
	}
}

// validateProbeAmounts checks the numbers of probes, assertions and expressions. It bounds the work
// of the checks that follow.
func validateProbeAmounts(probes []olm.ProgressionProbe, path *field.Path) field.ErrorList {
	if len(probes) > v1alpha1.MaxProgressionProbes {
		return field.ErrorList{tooMany(path, len(probes), fmt.Sprintf("a revision has at most %d progression probes", v1alpha1.MaxProgressionProbes))}
	}
	assertions := 0
	for _, probe := range probes {
		assertions += len(probe.Assertions)
	}
	if assertions > v1alpha1.MaxAssertions {
		return field.ErrorList{tooMany(path, assertions, fmt.Sprintf("a revision has at most %d assertions in all its progression probes", v1alpha1.MaxAssertions))}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	total := 0
	for at, expression := range expressions(probes, path) {
		if len(expression) > v1alpha1.MaxExpressionBytes {
			errs = append(errs, tooLong(at, fmt.Sprintf("the expression has %d bytes, must have at most %d", len(expression), v1alpha1.MaxExpressionBytes)))
		}
		if !seen[expression] {
			seen[expression] = true
			total += len(expression)
		}
	}
	if total > v1alpha1.MaxExpressionsBytes {
		errs = append(errs, tooLong(path, fmt.Sprintf("the expressions of a revision have %d bytes, must have at most %d", total, v1alpha1.MaxExpressionsBytes)))
	}
	return errs
}

func validateProbes(probes []olm.ProgressionProbe, path *field.Path) field.ErrorList {
	if errs := validateProbeAmounts(probes, path); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	for i, probe := range probes {
		errs = append(errs, validateSelector(&probe.Selector, path.Index(i).Child("selector"))...)
		assertions := path.Index(i).Child("assertions")
		if len(probe.Assertions) == 0 {
			errs = append(errs, field.Required(assertions, "a probe without assertions holds nothing back"))
		}
		for j := range probe.Assertions {
			errs = append(errs, validateAssertion(&probe.Assertions[j], secretsOnly(&probe.Selector), assertions.Index(j))...)
		}
	}
	return errs
}

func validateSelector(selector *olm.ProbeSelector, path *field.Path) field.ErrorList {
	if selector.GroupKind == nil && selector.LabelSelector == nil {
		return field.ErrorList{field.Required(path, "must have groupKind, labelSelector or both")}
	}
	var errs field.ErrorList
	if selector.GroupKind != nil {
		errs = append(errs, validateGroupKind(selector.GroupKind, path.Child("groupKind"))...)
	}
	if selector.LabelSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(selector.LabelSelector,
			metav1validation.LabelSelectorValidationOptions{}, path.Child("labelSelector"))...)
	}
	return errs
}

func validateGroupKind(selected *metav1.GroupKind, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if selected.Group != "" {
		for _, problem := range utilvalidation.IsDNS1123Subdomain(selected.Group) {
			errs = append(errs, field.Invalid(path.Child("group"), selected.Group, problem))
		}
	}
	if selected.Kind == "" {
		return append(errs, field.Required(path.Child("kind"), "such as Deployment"))
	}
	return append(errs, validateKind(selected.Kind, path.Child("kind"))...)
}

func secretsOnly(selector *olm.ProbeSelector) bool {
	return selector.GroupKind != nil && *selector.GroupKind == metav1.GroupKind{Kind: "Secret"}
}

// validateAssertion checks one assertion. secrets is true if the probe can select Secrets.
func validateAssertion(assertion *olm.ProbeAssertion, secrets bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var given []string
	if condition := assertion.ConditionEqual; condition != nil {
		given = append(given, "conditionEqual")
		errs = append(errs, validateConditionEqual(condition, path.Child("conditionEqual"))...)
	}
	if equal := assertion.FieldsEqual; equal != nil {
		given = append(given, "fieldsEqual")
		errs = append(errs, validateFieldPath(equal.FieldA, secrets, path.Child("fieldsEqual", "fieldA"))...)
		errs = append(errs, validateFieldPath(equal.FieldB, secrets, path.Child("fieldsEqual", "fieldB"))...)
	}
	if value := assertion.FieldValue; value != nil {
		given = append(given, "fieldValue")
		errs = append(errs, validateFieldPath(value.FieldPath, secrets, path.Child("fieldValue", "fieldPath"))...)
	}
	if cel := assertion.CEL; cel != nil {
		given = append(given, "cel")
		if cel.Expression == "" {
			errs = append(errs, field.Required(path.Child("cel", "expression"), "an expression over self, such as self.status.phase == 'Ready'"))
		}
	}
	switch len(given) {
	case 1:
		return errs
	case 0:
		return append(errs, field.Required(path, "must have one of conditionEqual, fieldsEqual, fieldValue and cel"))
	default:
		return append(errs, field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("has %s, must have exactly one: make them assertions of their own, all assertions must hold", strings.Join(given, " and "))))
	}
}

func validateConditionEqual(condition *olm.ConditionEqual, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if condition.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "such as Ready"))
	}
	return append(errs, oneOf(path.Child("status"), condition.Status, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown)...)
}

// validateFieldPath applies the rule of the engine, which splits paths at dots. The engine cannot
// address elements of lists or names with dots.
func validateFieldPath(value string, secrets bool, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "names joined by dots, such as status.readyReplicas")}
	}
	parts := strings.Split(value, ".")
	for _, part := range parts {
		if part == "" {
			return field.ErrorList{field.Invalid(path, value, "has an empty part, must be names joined by dots, such as status.readyReplicas")}
		}
	}
	if strings.ContainsAny(value, "[]") {
		return field.ErrorList{field.Invalid(path, value, "has brackets, must be names joined by dots: use cel for elements of lists")}
	}
	if secrets && (parts[0] == "data" || parts[0] == "stringData") {
		return field.ErrorList{field.Invalid(path, value, "is the content of a Secret, which probes cannot read")}
	}
	return nil
}
