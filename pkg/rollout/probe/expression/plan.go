package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// budgetName is the variable that holds the budget of an evaluation. No expression can name it.
const budgetName = "@budget"

func budgetOf(frame *interpreter.ExecutionFrame) *CostBudget {
	found, _ := frame.ResolveName(budgetName)
	budget, isBudget := found.(*CostBudget)
	if !isBudget {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "the evaluation has no budget"})
	}
	return budget
}

// planner adds charging to the plan of an expression.
type planner struct {
	prices    map[string]pricer
	overloads map[string]*functions.Overload
	// rounds is the cost of one round of a loop, without inner loops, by the id of the node of its
	// condition.
	rounds map[int64]uint64
	// keys are the nodes whose value is hashed; ranges are the nodes that loops iterate over.
	keys, ranges map[int64]bool
	// nodes is the cost of all other nodes.
	nodes uint64
}

// survey finds the nodes of an expression that cost more than one unit.
func (p *planner) survey(expr ast.Expr, units *uint64) {
	const scope, list, entries = 4, 2, 4 // additional units for memory
	*units++
	parts := partsOf(expr)
	switch expr.Kind() {
	case ast.ComprehensionKind:
		*units += scope
		loop := expr.AsComprehension()
		var round uint64
		p.survey(loop.LoopCondition(), &round)
		p.survey(loop.LoopStep(), &round)
		p.rounds[loop.LoopCondition().ID()] += round
		p.ranges[loop.IterRange().ID()] = true
		parts = []ast.Expr{loop.IterRange(), loop.AccuInit(), loop.Result()}
	case ast.CallKind:
		if name := expr.AsCall().FunctionName(); name == operators.Index || name == operators.OptIndex {
			p.keys[expr.AsCall().Args()[1].ID()] = true
		}
	case ast.ListKind:
		*units += list
	case ast.MapKind:
		*units += entries
		for _, entry := range expr.AsMap().Entries() {
			p.keys[entry.AsMapEntry().Key().ID()] = true
		}
	}
	for _, part := range parts {
		p.survey(part, units)
	}
}

// decorate is called for each node of the plan.
func (p *planner) decorate(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	id := node.ID()
	var err error
	if call, isCall := node.(interpreter.InterpretableCall); isCall {
		if node, err = p.metered(call); err != nil {
			return nil, err
		}
	}
	_, constant := node.(interpreter.InterpretableConst)
	if p.keys[id] && !constant {
		node = &paid{node, func(m *CostBudget, value ref.Val) { m.payFor(value) }}
	}
	if p.ranges[id] && !constant {
		node = &paid{node, payForRange}
	}
	if units := p.rounds[id]; units > 0 {
		node = &round{node, units}
	}
	return node, nil
}

// metered returns a call that is charged before its execution.
func (p *planner) metered(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	name := call.Function()
	if at, has := patternAt(name); has {
		return p.matching(call, at), nil
	}
	price, priced := p.prices[name]
	if !priced {
		return nil, fmt.Errorf("the function %s cannot be used here", name)
	}
	if price == nil {
		return call, nil
	}
	return &meteredCall{InterpretableV2: call, name: name, overload: call.OverloadID(), args: call.Args(), price: price, do: p.implementation(call)}, nil
}

// matching returns a call of a function with a pattern. A constant pattern is compiled once.
func (p *planner) matching(call interpreter.InterpretableCall, at int) interpreter.InterpretableV2 {
	c := &meteredCall{InterpretableV2: call, name: call.Function(), overload: call.OverloadID(), args: call.Args()}
	if at < len(c.args) {
		if constant, isConstant := c.args[at].(interpreter.InterpretableConst); isConstant {
			if known, err := newPattern(text([]ref.Val{constant.Value()}, 0)); err == nil {
				c.price = func(m *CostBudget, args []ref.Val) { known.payFor(m, c.name, textLength(args[0])) }
				c.do = func(args []ref.Val) ref.Val { return known.call(c.name, args) }
				return c
			}
		}
	}
	c.price = func(m *CostBudget, args []ref.Val) {
		source := text(args, at)
		m.payProduct(uint64(len(source)), unitsPerPatternByte)
		if steps, err := stepsOf(source); err == nil {
			(&pattern{steps: steps}).payFor(m, c.name, textLength(args[0]))
		}
	}
	c.do = p.implementation(call)
	return c
}

// implementation returns the function of a call as the library's planner finds it: by overload, by
// name, or by the type of the first argument.
func (p *planner) implementation(call interpreter.InterpretableCall) func(args []ref.Val) ref.Val {
	name, overload := call.Function(), call.OverloadID()
	switch name {
	case operators.Equals:
		return func(args []ref.Val) ref.Val { return types.Equal(args[0], args[1]) }
	case operators.NotEquals:
		return func(args []ref.Val) ref.Val { return types.Bool(types.Equal(args[0], args[1]) != types.True) }
	}
	found := p.overloads[overload]
	if overload == "" || found == nil {
		found = p.overloads[name]
	}
	other := func(args []ref.Val) ref.Val { return apply(found, name, overload, args) }
	if name != operators.Add {
		return other
	}
	return func(args []ref.Val) ref.Val {
		if sum, isList := sumOfLists(args); isList {
			return sum
		}
		return other(args)
	}
}

func apply(found *functions.Overload, name, overload string, args []ref.Val) ref.Val {
	if found != nil && (found.OperandTrait == 0 || args[0].Type().HasTrait(found.OperandTrait)) {
		switch {
		case len(args) == 1 && found.Unary != nil:
			return found.Unary(args[0])
		case len(args) == 2 && found.Binary != nil:
			return found.Binary(args[0], args[1])
		case found.Function != nil:
			return found.Function(args...)
		}
	}
	if args[0].Type().HasTrait(traits.ReceiverType) {
		return args[0].(traits.Receiver).Receive(name, overload, args[1:])
	}
	return types.NewErr("no such overload: %s", name)
}

// sumOfLists copies two lists into one. The library only links them: a list that is added to itself
// repeatedly is created fast and takes long to read.
func sumOfLists(args []ref.Val) (ref.Val, bool) {
	first, isList := args[0].(traits.Lister)
	second, areLists := args[1].(traits.Lister)
	if _, grows := args[0].(traits.MutableLister); grows || !isList || !areLists {
		return nil, false
	}
	sum := make([]ref.Val, 0, length(args[0])+length(args[1]))
	for _, list := range []traits.Lister{first, second} {
		for it := list.Iterator(); it.HasNext() == types.True; {
			sum = append(sum, it.Next())
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, sum), true
}

// meteredCall evaluates its arguments, charges for the call, and executes it. It hides that it is a
// call, so that the library does not replace it.
type meteredCall struct {
	interpreter.InterpretableV2
	name, overload string
	args           []interpreter.InterpretableV2
	price          pricer
	do             func(args []ref.Val) ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (c *meteredCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		args[i] = arg.Exec(frame)
	}
	for _, arg := range args {
		if types.IsUnknownOrError(arg) {
			return arg
		}
	}
	c.price(budgetOf(frame), args)
	return types.LabelErrNode(c.ID(), c.do(args))
}

// Eval implements interpreter.Interpretable.
func (c *meteredCall) Eval(vars cel.Activation) ref.Val { return c.Exec(interpreter.AsFrame(vars)) }

// paid is a node whose value is charged after its evaluation. It hides that it may be an attribute,
// so that the parent node evaluates it.
type paid struct {
	node interpreter.InterpretableV2
	pay  func(*CostBudget, ref.Val)
}

// ID implements interpreter.Interpretable.
func (k *paid) ID() int64 { return k.node.ID() }

// Exec implements interpreter.InterpretableV2.
func (k *paid) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := k.node.Exec(frame)
	if !types.IsUnknownOrError(value) {
		k.pay(budgetOf(frame), value)
	}
	return value
}

// Eval implements interpreter.Interpretable.
func (k *paid) Eval(vars cel.Activation) ref.Val { return k.Exec(interpreter.AsFrame(vars)) }

// payForRange charges for the start of a loop over a map, which collects the keys.
func payForRange(m *CostBudget, value ref.Val) {
	if _, isMap := value.(traits.Mapper); isMap {
		m.pay(8 * length(value))
	}
}

// round is the condition of a loop, which is evaluated at the start of each round.
type round struct {
	interpreter.InterpretableV2
	units uint64
}

// Exec implements interpreter.InterpretableV2.
func (r *round) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	budgetOf(frame).pay(r.units)
	return r.InterpretableV2.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (r *round) Eval(vars cel.Activation) ref.Val { return r.Exec(interpreter.AsFrame(vars)) }
