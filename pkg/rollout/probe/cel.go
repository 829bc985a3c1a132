package probe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// MaxCELCost bounds one evaluation, in CEL's cost units: what Kubernetes allows
// one expression of an admission policy, about a tenth of a second.
const MaxCELCost = celconfig.PerCallLimit

// Program is a compiled CEL expression.
type Program struct {
	expression string
	program    cel.Program
}

// CheckCEL says why an expression cannot be used: where its syntax or its types
// are wrong, or that it is not of type bool. It allows what every supported
// Kubernetes version knows.
func CheckCEL(expression string) error {
	_, err := (&compiler{checking: true}).program(expression)
	return err
}

// CompileCEL compiles an expression over self, the live object. It may use the
// functions that Kubernetes offers in CEL, and its type is bool.
func CompileCEL(expression string) (*Program, error) {
	return (&compiler{}).program(expression)
}

// compiler keeps the CEL environment, which takes longer to make than most
// expressions to compile.
type compiler struct {
	// checking allows less: see environment.NewExpressions.
	checking bool
	env      *cel.Env
}

// environment makes self known. The version is fixed, so that a new Kubernetes
// library never changes what new expressions may use without a decision here.
func (c *compiler) environment() (*cel.Env, error) {
	if c.env != nil {
		return c.env, nil
	}
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 34)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", cel.DynType)},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	c.env = set.StoredExpressionsEnv()
	if c.checking {
		c.env = set.NewExpressionsEnv()
	}
	return c.env, nil
}

func (c *compiler) program(expression string) (*Program, error) {
	env, err := c.environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, compileError(issues)
	}
	if kind := ast.OutputType(); !kind.IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("the expression is of type %s, must be bool: compare it with something, as in `self.spec.paused == true`", kind)
	}
	program, err := env.Program(ast, cel.CostLimit(MaxCELCost))
	if err != nil {
		return nil, fmt.Errorf("preparing the expression: %w", err)
	}
	return &Program{expression: expression, program: program}, nil
}

// compileError puts the issues on one line.
func compileError(issues *cel.Issues) error {
	var parts []string
	for _, issue := range issues.Errors() {
		parts = append(parts, fmt.Sprintf("line %d, column %d: %s",
			issue.Location.Line(), issue.Location.Column()+1, quote(issue.Message)))
	}
	if parts == nil {
		return fmt.Errorf("compiling the expression: %w", issues.Err())
	}
	return errors.New(sentence(parts...))
}

// errCost is a verdict on the expression, not on the object.
var errCost = fmt.Errorf("the expression costs more than %d units on this object, make it simpler", MaxCELCost)

// Eval evaluates the expression on an object. Errors are those of the
// expression: a field that is not there, a wrong type, too high a cost. It is
// safe for concurrent use.
func (p *Program) Eval(self map[string]any) (bool, error) {
	out, _, err := p.program.Eval(map[string]any{"self": self})
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return false, errCost
	case err != nil:
		return false, fmt.Errorf("evaluating the expression: %w", err)
	}
	result, isBool := out.Value().(bool)
	if !isBool {
		return false, fmt.Errorf("the expression resulted in %s, not in bool", out.Type().TypeName())
	}
	return result, nil
}

// expression is CEL, compiled.
type expression struct {
	program *Program
	message string
}

func (c *compiler) compile(assertion CEL) (judge, error) {
	program, err := c.program(assertion.Expression)
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return expression{program: program, message: quote(assertion.Message)}, nil
}

func (e expression) judge(v *view) Verdict {
	var note string
	if v.secret {
		note = "the content of a Secret is not read"
	}
	name := "`" + shorten(clean(e.program.expression), maxForeignBytes/2) + "`"
	switch holds, err := e.program.Eval(v.object); {
	case holds:
		return pass()
	case err == nil && e.message != "":
		return failing("%s", sentence(e.message, note))
	case err == nil:
		return failing("%s", sentence(name+" is false", note))
	case v.secret && !errors.Is(err, errCost):
		// The error may quote a value.
		return unknown("%s", sentence(name+" cannot be evaluated", note))
	default:
		return unknown("%s", sentence(name+": "+quote(strings.TrimPrefix(err.Error(), "evaluating the expression: ")), note))
	}
}

func (e expression) reads() Reads { return Reads{Whole: true} }
