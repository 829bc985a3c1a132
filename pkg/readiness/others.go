package readiness

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Plan is a ConfigurationPlan.
type Plan struct {
	Name string
	// Role is RolledOut if the plan will be or is executed, and Proposed if it waits for an
	// approval.
	Role Role
	// Targets are the objects that the plan configures.
	Targets []manifest.Ref
}

// ChartKind is a ChartKind.
type ChartKind struct {
	Name string
	// Inputs are the kinds of its inputs, in the order of its spec.
	Inputs []schema.GroupVersionKind
}

// Plan judges one plan.
func (j *Judge) Plan(plan *Plan) {
	from, seen := len(j.answer.Findings), map[string]int{}
	for i := range plan.Targets {
		target := &plan.Targets[i]
		found, ok := j.api(target.GroupVersionKind(), plan.Role)
		if !ok {
			continue
		}
		found.Plan, found.APIVersion, found.Kind, found.Namespace, found.Name = plan.Name, target.APIVersion(), target.Kind, target.Namespace, target.ID.Name
		found.Field, found.Fix = "apiVersion", "kubectl get configplan "+plan.Name+" -o yaml"
		j.find(found, seen)
	}
	j.tally(from)
}

// ChartKind judges one ChartKind. Its custom resources are judged as extensions.
func (j *Judge) ChartKind(kind *ChartKind) {
	from, seen := len(j.answer.Findings), map[string]int{}
	for i, input := range kind.Inputs {
		found, ok := j.api(input, RolledOut)
		if !ok {
			continue
		}
		found.ChartKind, found.APIVersion, found.Kind = kind.Name, input.GroupVersion().String(), input.Kind
		found.Field, found.Fix = fmt.Sprintf("spec.inputs[%d].version", i), "kubectl get chartkind "+kind.Name+" -o yaml"
		j.find(found, seen)
	}
	j.tally(from)
}

func (j *Judge) tally(from int) {
	for i := range j.answer.Findings[from:] {
		if found := &j.answer.Findings[from+i]; found.Acknowledged != nil {
			j.acknowledged++
		} else {
			j.counts[found.Severity]++
		}
	}
	if len(j.answer.Findings) > 2*MaxFindings {
		j.cut()
	}
}
