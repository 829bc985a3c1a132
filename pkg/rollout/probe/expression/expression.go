// Package expression evaluates CEL expressions of users over one object. Users may write any CEL,
// so the cost is limited: in steps and memory (see CostBudget), and in time (see Eval).
package expression

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

const (
	// maxLoops is the largest number of loops in an expression, which macros create. maxDepth is
	// the largest nesting of lists, maps and loops, including the lists that macros create. Type
	// checking takes time proportional to the cube of the depth.
	maxLoops, maxDepth = 16, 8
	// maxObjectDepth is maxDepth for expressions that build objects. Objects are deeper, and the
	// types of mixed maps are not compared.
	maxObjectDepth = 16
	// maxDuration limits one evaluation, in case a step takes longer than its cost suggests.
	// Evaluations are much faster, even on a busy machine.
	maxDuration = 5 * time.Second
	// evaluationUnits is the fixed cost of each evaluation, besides its nodes.
	evaluationUnits = 50
)

// Program is a compiled expression.
type Program struct {
	expression string
	program    cel.Program
	// units is the cost of an evaluation without its loops and calls.
	units uint64
}

// Compiler compiles expressions. It caches environments, because creating one takes longer than
// compiling most expressions. It is safe for concurrent use.
type Compiler struct {
	// Checking restricts new expressions to functions of every supported Kubernetes version, to
	// constant patterns, and to expressions whose types can be checked fast.
	Checking bool
	// Variables are the names of variables in expressions; empty means only self, the live object.
	Variables []string
	// JSON allows lists and maps with values of several types, as objects have, and deeper nesting.
	// The expression may then have any type (see Value).
	JSON bool

	once        sync.Once
	unavailable error
	typing      *cel.Env
	evaluation  *cel.Env
	overloads   map[string]*functions.Overload
	prices      map[string]pricer
}

func (c *Compiler) prepare() error {
	c.once.Do(func() { c.unavailable = c.environments() })
	return c.unavailable
}

func (c *Compiler) environments() error {
	variables := c.Variables
	if len(variables) == 0 {
		variables = []string{"self"}
	}
	var err error
	if c.evaluation, err = evaluation(c.JSON, variables...); err != nil {
		return err
	}
	if c.typing = c.evaluation; !c.JSON {
		set, err := typing(variables...)
		if err != nil {
			return err
		}
		if c.typing = set.StoredExpressionsEnv(); c.Checking {
			c.typing = set.NewExpressionsEnv()
		}
	}
	if c.overloads, err = implementations(c.evaluation); err != nil {
		return err
	}
	c.prices = pricers()
	for _, name := range free() {
		c.prices[name] = nil
	}
	return nil
}

// Compile compiles an expression. Its type must be bool, except with JSON. Errors are for the
// author: errors of syntax or type, or a feature that is not allowed.
func (c *Compiler) Compile(expression string) (*Program, error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	checked, err := c.check(expression)
	if err != nil {
		return nil, err
	}
	plan := &planner{prices: c.prices, overloads: c.overloads, rounds: map[int64]uint64{}, keys: map[int64]bool{}, ranges: map[int64]bool{}}
	plan.survey(checked.NativeRep().Expr(), &plan.nodes)
	program, err := c.evaluation.Program(checked, cel.InterruptCheckFrequency(celconfig.CheckFrequency), cel.CustomDecoratorV2(plan.decorate))
	if err != nil {
		return nil, fmt.Errorf("preparing the expression: %w", err)
	}
	return &Program{expression: expression, program: program, units: evaluationUnits + plan.nodes}, nil
}

func (c *Compiler) check(expression string) (*cel.Ast, error) {
	parsed, issues := c.typing.Parse(expression)
	if len(issues.Errors()) > 0 {
		return nil, compileError(issues)
	}
	if c.Checking {
		// The shape is checked before any work whose time grows with it.
		if err := c.checkShape(parsed.NativeRep().Expr()); err != nil {
			return nil, err
		}
		if err := checkPatterns(parsed.NativeRep().Expr()); err != nil {
			return nil, err
		}
	}
	checked, issues := c.typing.Check(parsed)
	if len(issues.Errors()) > 0 {
		return nil, compileError(issues)
	}
	if kind := checked.OutputType(); !c.JSON && !kind.IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("the expression is of type %s, must be bool: compare it with something, as in `self.spec.paused == true`", kind)
	}
	return checked, nil
}

// checkShape refuses an expression whose types would take long to check.
func (c *Compiler) checkShape(expr ast.Expr) error {
	most := maxDepth
	if c.JSON {
		most = maxObjectDepth
	}
	switch loops, depth := shapeOf(expr); {
	case loops > maxLoops:
		return fmt.Errorf("the expression has %d loops (all, exists, map, filter and others), must have at most %d", loops, maxLoops)
	case depth > most:
		return fmt.Errorf("lists, maps and loops are %d deep within each other in the expression, must be at most %d", depth, most)
	}
	return nil
}

// shapeOf returns the number of loops, and the nesting depth of lists, maps and loops.
func shapeOf(expr ast.Expr) (loops, depth int) {
	own := 0
	switch expr.Kind() {
	case ast.ComprehensionKind:
		loops, own = 1, 1
	case ast.ListKind, ast.MapKind, ast.StructKind:
		own = 1
	}
	for _, part := range partsOf(expr) {
		within, deep := shapeOf(part)
		loops, depth = loops+within, max(depth, deep)
	}
	return loops, depth + own
}

// partsOf returns the children of a node.
func partsOf(expr ast.Expr) []ast.Expr {
	var parts []ast.Expr
	switch expr.Kind() {
	case ast.ComprehensionKind:
		loop := expr.AsComprehension()
		parts = append(parts, loop.IterRange(), loop.AccuInit(), loop.LoopCondition(), loop.LoopStep(), loop.Result())
	case ast.CallKind:
		call := expr.AsCall()
		if call.IsMemberFunction() {
			parts = append(parts, call.Target())
		}
		parts = append(parts, call.Args()...)
	case ast.SelectKind:
		parts = append(parts, expr.AsSelect().Operand())
	case ast.ListKind:
		parts = append(parts, expr.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range expr.AsStruct().Fields() {
			parts = append(parts, field.AsStructField().Value())
		}
	}
	return parts
}

const maxIssues = 10

func compileError(issues *cel.Issues) error {
	var parts []string
	for _, issue := range issues.Errors() {
		if len(parts) == maxIssues {
			break
		}
		parts = append(parts, fmt.Sprintf("line %d, column %d: %.256s",
			issue.Location.Line(), issue.Location.Column()+1, strings.Join(strings.Fields(issue.Message), " ")))
	}
	return errors.New(strings.Join(parts, "; "))
}

// ErrCost reports that the budget was too small, because the expression is too expensive.
var ErrCost = errors.New("the expression costs too much on this object")

// String returns the source of the expression.
func (p *Program) String() string { return p.expression }

// Eval evaluates the expression on an object, and does not change the object. It fails for a
// missing field, a wrong type, or the end of ctx, and with ErrCost for a spent budget. It is safe
// for concurrent use with separate budgets.
func (p *Program) Eval(ctx context.Context, self map[string]any, budget *CostBudget) (bool, error) {
	out, err := p.eval(ctx, map[string]any{"self": self}, budget)
	if err != nil {
		return false, err
	}
	result, isBool := out.Value().(bool)
	if !isBool {
		return false, fmt.Errorf("the expression resulted in %s, not in bool", out.Type().TypeName())
	}
	return result, nil
}

// Value evaluates the expression on the variables of its compiler, and does not change them. It
// returns the result as JSON types: nil, bool, int64, float64, string, []any and map[string]any.
// The result is also charged, so it is never larger than the budget. It fails as Eval does, and for
// results that JSON cannot represent.
func (p *Program) Value(ctx context.Context, variables map[string]any, budget *CostBudget) (any, error) {
	out, err := p.eval(ctx, variables, budget)
	if err != nil {
		return nil, err
	}
	return budget.json(out)
}

func (p *Program) eval(ctx context.Context, variables map[string]any, budget *CostBudget) (ref.Val, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("evaluating the expression: %w", err)
	}
	if !budget.Spend(p.units) {
		return nil, ErrCost
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxDuration, errTooSlow)
	defer cancel()
	all := maps.Clone(variables)
	all[budgetName] = budget
	out, _, err := p.program.ContextEval(ctx, all)
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return nil, ErrCost
	case err != nil:
		budget.slow = budget.slow || errors.Is(context.Cause(ctx), errTooSlow)
		return nil, fmt.Errorf("evaluating the expression: %w", err)
	}
	return out, nil
}

var errTooSlow = fmt.Errorf("it takes longer than %s", maxDuration)
