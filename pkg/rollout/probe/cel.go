package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/rollout/probe/expression"
	"github.com/penstock-project/penstock/pkg/text"
)

// MaxCELCost is the largest total cost of all expressions for one object, in units of package
// expression. It takes some hundredths of a second.
const MaxCELCost = 500_000

// CostBudget counts the cost of expressions.
type CostBudget = expression.CostBudget

// NewCostBudget returns a budget of the given number of units.
func NewCostBudget(units uint64) *CostBudget { return expression.NewCostBudget(units) }

// Program is a compiled CEL expression.
type Program struct{ *expression.Program }

// NewCELChecker returns a function that validates expressions. It refuses errors of syntax or type,
// a type other than bool, and expressions that take long to compile. It allows only functions of
// every supported Kubernetes version. It caches its environments, and is safe for concurrent use.
func NewCELChecker() func(text string) error {
	compiler := &expression.Compiler{Checking: true}
	return func(text string) error {
		_, err := compiler.Compile(text)
		return err
	}
}

// CompileCEL compiles an expression over self, the live object. It may use the CEL functions of
// Kubernetes, and its type must be bool.
func CompileCEL(text string) (*Program, error) {
	program, err := (&expression.Compiler{}).Compile(text)
	if err != nil {
		return nil, err
	}
	return &Program{program}, nil
}

// errCost blames the expression, not the object.
var errCost = fmt.Errorf("the expression costs more than %d units on this object, make it simpler", MaxCELCost)

// Eval evaluates the expression on an object. It fails for a missing field, a wrong type, a cost
// beyond the limit, or the end of ctx. It is safe for concurrent use.
func (p *Program) Eval(ctx context.Context, self map[string]any) (bool, error) {
	holds, err := p.Program.Eval(ctx, self, expression.NewCostBudget(MaxCELCost))
	if errors.Is(err, expression.ErrCost) {
		return false, errCost
	}
	return holds, err
}

// metered is a prober with user-written requirements.
type metered struct{ prober }

var _ Metered = &metered{}

// ProbeWithin implements Metered.
func (p *metered) ProbeWithin(ctx context.Context, object *unstructured.Unstructured, budget *CostBudget) Verdict {
	return p.probe(object, evaluation{budget: budget, eval: func(program *expression.Program, self map[string]any) (bool, error) {
		return program.Eval(ctx, self, budget)
	}})
}

// evaluation holds the budget and the evaluator for the expressions of one object.
type evaluation struct {
	budget *CostBudget
	eval   func(program *expression.Program, self map[string]any) (bool, error)
}

// alone returns an evaluation with its own budget and no context.
func alone() evaluation {
	budget := expression.NewCostBudget(MaxCELCost)
	return evaluation{budget: budget, eval: func(program *expression.Program, self map[string]any) (bool, error) {
		return program.Eval(context.Background(), self, budget)
	}}
}

type celJudge struct {
	program *expression.Program
	message string
}

func (c *compiler) compile(assertion CEL) (judge, error) {
	program, err := c.expressions.Compile(assertion.Expression)
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return celJudge{program: program, message: quote(assertion.Message)}, nil
}

func (e celJudge) judge(v *view) Verdict {
	var note string
	if v.secret {
		note = "the content of a Secret is not read"
	}
	name := "`" + text.Clip(clean(e.program.String()), maxForeignBytes/2) + "`"
	spent := v.budget.Left() == 0
	switch holds, err := v.eval(e.program, v.object); {
	case holds:
		return pass()
	case err == nil && e.message != "":
		return failing("%s", sentence(e.message, note))
	case err == nil:
		return failing("%s", sentence(name+" is false", note))
	case spent:
		return unknown("%s", sentence(name+" was not evaluated", note))
	case errors.Is(err, expression.ErrCost):
		return unknown("%s", sentence(name+": "+errCost.Error(), note))
	case v.secret:
		// The error may quote a value.
		return unknown("%s", sentence(name+" cannot be evaluated", note))
	default:
		return unknown("%s", sentence(name+": "+quote(strings.TrimPrefix(err.Error(), "evaluating the expression: ")), note))
	}
}

func (e celJudge) reads() Reads { return Reads{Whole: true} }

type compiler struct{ expressions expression.Compiler }
