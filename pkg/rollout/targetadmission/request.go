package targetadmission

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// request is what is known of an update of ours whatever it updates: who sends it, that it is an
// update, and that it is of no subresource. Policies that are about others or about
// other requests are told by that, our own among them (docs/reference/identities.md).
type request struct {
	env  *cel.Env
	vars interpreter.PartialActivation
}

// requestBy is an update by a user.
func requestBy(user string) request {
	others := []string{"object", "oldObject", "params", "namespaceObject", "authorizer", "variables"}
	options := []cel.EnvOption{cel.Variable("request", cel.DynType)}
	var unknown []*cel.AttributePatternType
	for _, name := range others {
		options = append(options, cel.Variable(name, cel.DynType))
		unknown = append(unknown, cel.AttributePattern(name))
	}
	// All other fields of an AdmissionRequest (k8s.io/api/admission/v1).
	for _, field := range []string{"uid", "kind", "resource", "requestKind", "requestResource", "name", "namespace", "object", "oldObject", "dryRun", "options"} {
		unknown = append(unknown, cel.AttributePattern("request").QualString(field))
	}
	for _, field := range []string{"uid", "groups", "extra"} {
		unknown = append(unknown, cel.AttributePattern("request").QualString("userInfo").QualString(field))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return request{}
	}
	vars, err := cel.PartialVars(map[string]any{"request": map[string]any{
		"operation": string(admissionregistrationv1.Update), "userInfo": map[string]any{"username": user},
	}}, unknown...)
	if err != nil {
		return request{}
	}
	return request{env, vars}
}

// excluded is true when a condition is certainly false.
func (r request) excluded(conditions []admissionregistrationv1.MatchCondition) bool {
	return slices.ContainsFunc(conditions, func(c admissionregistrationv1.MatchCondition) bool { return r.says(c.Expression) == types.False })
}

// passes is true when all validations are certainly true.
func (r request) passes(validations []admissionregistrationv1.Validation) bool {
	return len(validations) > 0 && !slices.ContainsFunc(validations, func(v admissionregistrationv1.Validation) bool { return r.says(v.Expression) != types.True })
}

// says evaluates an expression as far as it can be. It is nil for what depends on anything else,
// or needs a library that only API servers have.
func (r request) says(expression string) any {
	if r.env == nil {
		return nil
	}
	checked, issues := r.env.Compile(expression)
	if issues.Err() != nil {
		return nil
	}
	program, err := r.env.Program(checked, cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(mostCost))
	if err != nil {
		return nil
	}
	value, _, err := program.Eval(r.vars)
	if err != nil {
		return nil
	}
	if decided, is := value.(types.Bool); is {
		return decided
	}
	return nil
}

// mostCost bounds what an expression may cost here.
const mostCost = 10_000
