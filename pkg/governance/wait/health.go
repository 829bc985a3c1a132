package wait

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// Unhealthy describes the problems that operators report about a target in effect; empty for none.
// A rollout that another user has started is not a problem, and neither is an unobserved object.
func Unhealthy(target, live *unstructured.Unstructured, facts profile.Facts) string {
	kind := target.GroupVersionKind().GroupKind()
	var problems []string
	switch kind {
	case profile.MachineConfigKind():
		for _, pool := range profile.PoolsOf(facts, target.GetLabels()) {
			if overrides := profile.Overrides(facts, pool, target); len(overrides) > 0 {
				problems = append(problems, overridden(pool, target.GetName(), overrides).Message)
			}
			problems = append(problems, poolProblems(pool)...)
		}
	case profile.KubeletConfigKind():
		if live == nil {
			break
		}
		if kind, _, message := lastCondition(live); kind == "Failure" {
			problems = append(problems, "the Machine Config Operator refuses the KubeletConfig: "+message)
		}
		for _, pool := range profile.PoolsOfKubeletConfig(facts, target) {
			problems = append(problems, poolProblems(pool)...)
		}
	default:
		if live == nil {
			break
		}
		if message, _, degraded := complaint(live); degraded {
			problems = append(problems, "its operator is degraded: "+message)
		}
		if phase, _, _ := unstructured.NestedString(live.Object, "status", "phase"); kind == healthChecks() && phase == "Disabled" {
			message, _, _ := condition(live, "Disabled")
			problems = append(problems, "the Node Health Check Operator has disabled it: "+message)
		}
	}
	return strings.Join(problems, "; ")
}

func poolProblems(pool *unstructured.Unstructured) []string {
	var problems []string
	for _, kind := range []string{"RenderDegraded", "NodeDegraded"} {
		if message, _, degraded := condition(pool, kind); degraded {
			problems = append(problems, fmt.Sprintf("MachineConfigPool %q is %s: %s", pool.GetName(), kind, message))
		}
	}
	return problems
}

// complaint returns a condition that reports an operator as degraded. Its type is Degraded, or ends
// in Degraded if it is about one of the operator's controllers.
func complaint(object *unstructured.Unstructured) (message string, since time.Time, holds bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var kinds []string
	for _, item := range conditions {
		one, _ := item.(map[string]any)
		if kind, _ := one["type"].(string); strings.HasSuffix(kind, "Degraded") && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		if message, since, holds = condition(object, kind); holds {
			return message, since, true
		}
	}
	return "", time.Time{}, false
}
