package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestYield(t *testing.T) {
	deployments := olm.YieldSelector{GroupKind: metav1.GroupKind{Group: "apps", Kind: "Deployment"}}
	rules := func(rules ...olm.YieldRule) change {
		return withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.Yield = rules })
	}
	fields := func(fields ...string) change { return rules(olm.YieldRule{Selector: deployments, Fields: fields}) }
	repeated := make([]string, v1alpha1.MaxYieldRules+1)
	many1 := make([]olm.YieldRule, v1alpha1.MaxYieldRules+1)
	for i := range repeated {
		repeated[i], many1[i] = "spec.replicas", olm.YieldRule{Selector: deployments, Fields: []string{"spec.replicas"}}
	}
	const at = "spec.yield[0]"
	runRevisionCases(t, map[string]revisionCase{
		"Field":         {reason: "a field", change: fields("spec.replicas")},
		"Item":          {reason: "a field of list items", change: fields("spec.template.spec.containers[name=main].resources", "spec.template.spec.containers[*].image")},
		"Most":          {reason: "as many as allowed", change: rules(many1[1:]...)},
		"TooMany":       {reason: "one more", change: rules(many1...), want: []string{many + "spec.yield"}, mentions: "at most 64"},
		"TooManyFields": {reason: "one more field", change: fields(repeated...), want: []string{many + at + ".fields"}, mentions: "at most 64"},
		"NoFields":      {reason: "a rule for nothing", change: fields(), want: []string{missing + at + ".fields"}},
		"Path":          {reason: "an index is no key", change: fields("spec.containers[0]"), want: []string{invalid + at + ".fields[0]"}, mentions: "[key=value]"},
		"NoKind": {
			reason: "a kind is needed", change: rules(olm.YieldRule{Fields: []string{"spec.replicas"}}),
			want: []string{missing + at + ".selector.groupKind.kind"},
		},
	})
}
