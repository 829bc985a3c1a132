package expression

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// maxPatternSteps is the largest size of a compiled regular expression, in steps. 13 characters
	// can make a thousand times as many.
	maxPatternSteps = 1000
	// maxPatternClasses is the largest number of Unicode classes in a pattern. Each class is a
	// table of hundreds of ranges.
	maxPatternClasses = 2
	// unitsPerPatternByte is the cost of compiling a pattern that was not checked when its revision
	// was created: a thousand steps for each byte.
	unitsPerPatternByte = 2500
	// stepsPerUnit is the number of matching steps per cost unit.
	stepsPerUnit = 4
	// unitsPerFind is the cost of each byte of a text in which all matches are searched: each byte
	// may be a match.
	unitsPerFind = 15
)

// patternAt returns the index of the argument that is a regular expression, counted from the
// receiver.
func patternAt(function string) (int, bool) {
	switch function {
	case "matches", "find", "findAll":
		return 1, true
	}
	return 0, false
}

type pattern struct {
	compiled *regexp.Regexp
	steps    uint64
}

// newPattern compiles a regular expression unless it is too large.
func newPattern(source string) (*pattern, error) {
	steps, err := stepsOf(source)
	if err != nil {
		return nil, err
	}
	if steps > maxPatternSteps {
		return nil, fmt.Errorf("the pattern %.40q… takes about %d steps, must have at most %d: repeat less", source, steps, maxPatternSteps)
	}
	compiled, err := regexp.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("the pattern %.40q: %w", source, err)
	}
	return &pattern{compiled, steps}, nil
}

// stepsOf returns the approximate number of steps of a pattern, without compiling it.
func stepsOf(source string) (uint64, error) {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("the pattern %.40q: %w", source, err)
	}
	return stepsOfTree(tree), nil
}

func stepsOfTree(tree *syntax.Regexp) uint64 {
	// A character class is searched, and letters without case are compared several times.
	steps := uint64(1 + len(tree.Rune)/16)
	if tree.Op == syntax.OpLiteral {
		steps = uint64(1 + len(tree.Rune))
	}
	for _, sub := range tree.Sub {
		steps += stepsOfTree(sub)
	}
	if tree.Op == syntax.OpRepeat {
		steps = 1 + steps*uint64(max(tree.Min, tree.Max, 1))
	}
	return steps
}

// payFor charges for matching a text, once or at every position.
func (p *pattern) payFor(m *CostBudget, function string, length int) {
	m.payProduct(uint64(length)/stepsPerUnit+1, p.steps)
	if function == "findAll" {
		m.payProduct(uint64(length)+1, unitsPerFind)
	}
}

// call calls the function with the compiled pattern. For arguments of other types, it returns the
// libraries' errors.
func (p *pattern) call(function string, args []ref.Val) ref.Val {
	in, isText := args[0].(types.String)
	if !isText {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	switch function {
	case "matches":
		return types.Bool(p.compiled.MatchString(string(in)))
	case "find":
		return types.String(p.compiled.FindString(string(in)))
	}
	most := types.Int(-1)
	if len(args) == 3 {
		if most, isText = args[2].(types.Int); !isText {
			return types.MaybeNoSuchOverloadErr(args[2])
		}
	}
	return types.NewStringList(types.DefaultTypeAdapter, p.compiled.FindAllString(string(in), int(most)))
}

// checkPatterns refuses patterns that would take long to compile, before they are compiled, and
// patterns that are not constant.
func checkPatterns(expr ast.Expr) error {
	for _, part := range partsOf(expr) {
		if err := checkPatterns(part); err != nil {
			return err
		}
	}
	if expr.Kind() != ast.CallKind {
		return nil
	}
	call := expr.AsCall()
	at, has := patternAt(call.FunctionName())
	if call.IsMemberFunction() {
		at--
	}
	if !has || at >= len(call.Args()) {
		return nil
	}
	source, isText := literal(call.Args()[at])
	if !isText {
		return fmt.Errorf("the pattern of %s must be a text in quotes: a computed pattern would be compiled at each evaluation", call.FunctionName())
	}
	if classes := strings.Count(source, `\p`) + strings.Count(source, `\P`); classes > maxPatternClasses {
		return fmt.Errorf("the pattern %.40q… has %d classes of Unicode, must have at most %d", source, classes, maxPatternClasses)
	}
	_, err := newPattern(source)
	return err
}

// literal returns the value of a text literal.
func literal(expr ast.Expr) (string, bool) {
	if expr.Kind() != ast.LiteralKind {
		return "", false
	}
	value, isText := expr.AsLiteral().(types.String)
	return string(value), isText
}
