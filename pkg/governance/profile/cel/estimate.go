package cel

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/penstock-project/penstock/pkg/rollout/probe/expression"
)

// Assumptions of the estimate: the number of values in a list or a map, and the bytes of a text.
// For larger values, the budget of an evaluation bounds the cost.
const (
	assumedValues = 50
	assumedText   = 256
)

// sizes provides these assumptions to the estimator of Kubernetes.
type sizes struct{}

var _ checker.CostEstimator = sizes{}

// EstimateSize implements checker.CostEstimator.
func (sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if kind := element.Type(); kind != nil && (kind.IsExactType(celgo.StringType) || kind.IsExactType(celgo.BytesType)) {
		return &checker.SizeEstimate{Min: 0, Max: assumedText}
	}
	return &checker.SizeEstimate{Min: 0, Max: assumedValues}
}

// EstimateCallCost implements checker.CostEstimator.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// estimate refuses expressions above the cost limit of ValidatingAdmissionPolicies. The author then
// sees the error at the write, and not the user of a plan at its computation.
func (d *Definition) estimate() field.ErrorList {
	var errs field.ErrorList
	var total uint64
	for _, role := range roles(d.spec) {
		env, err := untyped(role.names)
		if err != nil {
			return field.ErrorList{field.InternalError(role.path, err)}
		}
		ast, issues := env.Compile(role.text)
		if issues.Err() != nil {
			continue // compile has reported it
		}
		cost, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes{}})
		if err != nil {
			errs = append(errs, field.Invalid(role.path, clip(role.text), fmt.Sprintf("its cost cannot be estimated: %s", err)))
			continue
		}
		if cost.Max > celconfig.PerCallLimit {
			errs = append(errs, field.Forbidden(role.path, fmt.Sprintf("may cost %s units with %d values in each list, must cost at most %d: use fewer nested loops, or loop over fewer values", units(cost.Max), assumedValues, celconfig.PerCallLimit)))
			continue
		}
		total += cost.Max
	}
	if total > celconfig.RuntimeCELCostBudget {
		errs = append(errs, field.Forbidden(field.NewPath("items"), fmt.Sprintf("all expressions together may cost %d units, must cost at most %d", total, celconfig.RuntimeCELCostBudget)))
	}
	return errs
}

func units(cost uint64) string {
	if cost > 1e15 {
		return "more than 10^15"
	}
	return fmt.Sprint(cost)
}

// untyped returns an environment with variables of unknown types.
func untyped(names []string) (*celgo.Env, error) {
	options := expression.Functions()
	for _, name := range names {
		options = append(options, celgo.Variable(name, celgo.DynType))
	}
	return celgo.NewEnv(options...)
}
