package validation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestProbeSelectors(t *testing.T) {
	selector := func(s olm.ProbeSelector) change {
		return withProbe(func(p *olm.ProgressionProbe) { p.Selector = s })
	}
	amount := func(n int) change {
		return withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
			for len(s.ProgressionProbes) < n {
				s.ProgressionProbes = append(s.ProgressionProbes, s.ProgressionProbes[0])
			}
		})
	}
	assertions := func(probes, each int) change {
		return withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
			probe := olm.ProgressionProbe{Selector: s.ProgressionProbes[0].Selector}
			for range each {
				probe.Assertions = append(probe.Assertions, olm.ProbeAssertion{FieldValue: &olm.FieldValue{FieldPath: "a"}})
			}
			s.ProgressionProbes = slices.Repeat([]olm.ProgressionProbe{probe}, probes)
		})
	}
	const at = "spec.progressionProbes[0]"
	runRevisionCases(t, map[string]revisionCase{
		"Most": {reason: "as many as allowed", change: amount(v1alpha1.MaxProgressionProbes)},
		"TooMany": {
			reason: "one more", change: amount(v1alpha1.MaxProgressionProbes + 1),
			want: []string{many + "spec.progressionProbes"}, mentions: "65: a revision has at most 64",
		},
		"MostAssertions": {reason: "as many as allowed, over all probes", change: assertions(2, v1alpha1.MaxAssertions/2)},
		"TooManyAssertions": {
			reason: "one more, and nothing else is looked at", change: assertions(1, v1alpha1.MaxAssertions+1),
			want: []string{many + "spec.progressionProbes"}, mentions: "129: a revision has at most 128 assertions",
		},
		"CoreKind": {reason: "the core group is empty", change: selector(olm.ProbeSelector{GroupKind: &metav1.GroupKind{Kind: "Pod"}})},
		"Labels":   {reason: "labels alone", change: selector(olm.ProbeSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}})},
		"Everything": {reason: "an empty label selector is everything, as elsewhere",
			change: selector(olm.ProbeSelector{LabelSelector: &metav1.LabelSelector{}})},
		"None": {
			reason: "nobody means everything by nothing", change: selector(olm.ProbeSelector{}),
			want: []string{missing + at + ".selector"}, mentions: "groupKind, labelSelector or both",
		},
		"NoKind": {
			reason: "a group alone", change: selector(olm.ProbeSelector{GroupKind: &metav1.GroupKind{Group: "apps"}}),
			want: []string{missing + at + ".selector.groupKind.kind"},
		},
		"Group": {
			reason: "with a version in it", change: selector(olm.ProbeSelector{GroupKind: &metav1.GroupKind{Group: "apps/v1", Kind: "Deployment"}}),
			want: []string{invalid + at + ".selector.groupKind.group"},
		},
		"Kind": {
			reason: "with a group in it", change: selector(olm.ProbeSelector{GroupKind: &metav1.GroupKind{Kind: "Deployment.apps"}}),
			want: []string{invalid + at + ".selector.groupKind.kind"},
		},
		"Operator": {
			reason: "label selectors have their own rules",
			change: selector(olm.ProbeSelector{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}),
			want:   []string{invalid + at + ".selector.labelSelector.matchExpressions[0].operator"},
		},
		"NoAssertions": {
			reason: "a probe that asks nothing", change: withProbe(func(p *olm.ProgressionProbe) { p.Assertions = nil }),
			want: []string{missing + at + ".assertions"},
		},
	})
}

func TestAssertions(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) change {
		return withAssertion(olm.ProbeAssertion{ConditionEqual: &olm.ConditionEqual{Type: kind, Status: status}})
	}
	fieldValue := func(path string) change {
		return withAssertion(olm.ProbeAssertion{FieldValue: &olm.FieldValue{FieldPath: path, Value: "x"}})
	}
	ofSecrets := func(then change) change {
		return func(r *olm.ClusterExtensionRevision) {
			r.Spec.ProgressionProbes[0].Selector.GroupKind = &metav1.GroupKind{Kind: "Secret"}
			then(r)
		}
	}
	const at = "spec.progressionProbes[0].assertions[0]"
	runRevisionCases(t, map[string]revisionCase{
		"None": {reason: "nothing is asked", change: withAssertion(olm.ProbeAssertion{}), want: []string{missing + at}, mentions: "one of conditionEqual, fieldsEqual, fieldValue and cel"},
		"Two": {
			reason: "which of them holds the phase back would be unclear",
			change: withAssertion(olm.ProbeAssertion{CEL: &olm.CELAssertion{Expression: "true"}, FieldValue: &olm.FieldValue{FieldPath: "a", Value: "b"}}),
			want:   []string{invalid + at}, mentions: "has fieldValue and cel, must have exactly one",
		},
		"ConditionUnknown": {reason: "a status like others", change: condition("Ready", metav1.ConditionUnknown)},
		"ConditionStatus":  {reason: "allowed values are listed", change: condition("Ready", "true"), want: []string{notSupported + at + ".conditionEqual.status"}, mentions: `"True", "False", "Unknown"`},
		"ConditionType":    {reason: "which condition", change: condition("", metav1.ConditionTrue), want: []string{missing + at + ".conditionEqual.type"}},
		"FieldsEqual":      {reason: "two paths", change: withAssertion(olm.ProbeAssertion{FieldsEqual: &olm.FieldsEqual{FieldA: "spec.replicas", FieldB: "status.readyReplicas"}})},
		"FieldsMissing": {
			reason: "both are needed", change: withAssertion(olm.ProbeAssertion{FieldsEqual: &olm.FieldsEqual{}}),
			want: []string{missing + at + ".fieldsEqual.fieldA", missing + at + ".fieldsEqual.fieldB"},
		},
		"FieldValue":    {reason: "one path", change: fieldValue("status.phase")},
		"LeadingDot":    {reason: "as jsonpath has it", change: fieldValue(".status.phase"), want: []string{invalid + at + ".fieldValue.fieldPath"}, mentions: "empty part"},
		"Brackets":      {reason: "elements of lists", change: fieldValue("status.conditions[0].status"), want: []string{invalid + at + ".fieldValue.fieldPath"}, mentions: "use cel"},
		"SecretType":    {reason: "the type of a Secret may be read", change: ofSecrets(fieldValue("type"))},
		"SecretContent": {reason: "its content cannot", change: ofSecrets(fieldValue("data.password")), want: []string{invalid + at + ".fieldValue.fieldPath"}, mentions: "content of a Secret"},
		"OtherData":     {reason: "data of another kind may", change: fieldValue("data.password")},
		"CEL":           {reason: "an expression, which is compiled elsewhere", change: withAssertion(olm.ProbeAssertion{CEL: &olm.CELAssertion{Expression: "?"}})},
		"NoCEL":         {reason: "no expression", change: withAssertion(olm.ProbeAssertion{CEL: &olm.CELAssertion{Message: "m"}}), want: []string{missing + at + ".cel.expression"}},
	})
}

func TestExpressions(t *testing.T) {
	check := func(expression string) error {
		if expression == "good" {
			return nil
		}
		return errors.New("syntax error at 1:1")
	}
	cases := map[string]struct {
		reason     string
		expression string
		want       []string
		mentions   string
	}{
		"Good":  {reason: "what check accepts", expression: "good"},
		"Empty": {reason: "said by ValidateRevision"},
		"Bad":   {reason: "what check says is the message", expression: "bad", want: []string{invalid + "spec.progressionProbes[0].assertions[0].cel.expression"}, mentions: `"bad": syntax error at 1:1`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := revision(withAssertion(olm.ProbeAssertion{CEL: &olm.CELAssertion{Expression: tc.expression}}))
			checkErrors(t, tc.reason, ValidateExpressions(t.Context(), r, check), tc.want, tc.mentions)
		})
	}
}

// TestExpressionAmounts: the length of expressions is checked before any expression is compiled.
func TestExpressionAmounts(t *testing.T) {
	expressions := func(texts ...string) change {
		return withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
			s.ProgressionProbes[0].Assertions = nil
			for _, text := range texts {
				s.ProgressionProbes[0].Assertions = append(s.ProgressionProbes[0].Assertions, olm.ProbeAssertion{CEL: &olm.CELAssertion{Expression: text}})
			}
		})
	}
	sized := func(i, size int) string { return fmt.Sprintf("%*d", size, i) }
	var most []string
	for i := range v1alpha1.MaxExpressionsBytes / 1024 {
		most = append(most, sized(i, 1024))
	}
	const at = "spec.progressionProbes"
	runRevisionCases(t, map[string]revisionCase{
		"Longest": {reason: "as long as allowed", change: expressions(sized(0, v1alpha1.MaxExpressionBytes))},
		"Most":    {reason: "as much as allowed", change: expressions(most...)},
		"Same":    {reason: "a text counts once, as it is compiled once", change: expressions(append(most, most...)...)},
		"TooMuch": {reason: "one more", change: expressions(append(most, "x")...), want: []string{long + at}, mentions: "have 6145 bytes, must have at most 6144"},
		"TooLong": {
			reason: "one is longer", change: expressions(sized(0, v1alpha1.MaxExpressionBytes+1)),
			want: []string{long + at + "[0].assertions[0].cel.expression"}, mentions: "has 4097 bytes, must have at most 4096",
		},
	})
}

// TestCompilations: each text is compiled once, and none after the request has ended.
func TestCompilations(t *testing.T) {
	r := revision(withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
		for i := range 30 {
			s.ProgressionProbes[0].Assertions = append(s.ProgressionProbes[0].Assertions,
				olm.ProbeAssertion{CEL: &olm.CELAssertion{Expression: strings.Repeat("x", i%3+1)}})
		}
	}))
	compiled := 0
	check := func(string) error {
		compiled++
		return errors.New("never right")
	}
	if errs := ValidateExpressions(t.Context(), r, check); compiled != 3 || len(errs) != 30 {
		t.Errorf("%d compilations and %d errors of 30 expressions with three texts", compiled, len(errs))
	}
	compiled = 0
	many := revision(withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
		for i := range 100 {
			s.ProgressionProbes[0].Assertions = append(s.ProgressionProbes[0].Assertions, olm.ProbeAssertion{CEL: &olm.CELAssertion{Expression: fmt.Sprint(i)}})
		}
	}))
	if errs := ValidateExpressions(t.Context(), many, check); compiled != 10 || len(errs) != 11 {
		t.Errorf("%d compilations and %d errors of 100 wrong expressions", compiled, len(errs))
	}
	compiled = 0
	gone, leave := context.WithCancel(t.Context())
	leave()
	if errs := ValidateExpressions(gone, r, check); compiled != 0 || len(errs) == 0 {
		t.Errorf("%d compilations for a client that left, errors: %v", compiled, errs)
	}
}
