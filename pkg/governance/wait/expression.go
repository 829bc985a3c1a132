package wait

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// Expressions evaluates waits in CEL. It caches compiled expressions, because compiling in every
// pass would be too slow. The zero value is ready.
type Expressions struct {
	mu       sync.Mutex
	programs map[string]*probe.Program
}

// Check returns an error for the first wait whose expression is invalid.
func (e *Expressions) Check(waits []profile.Wait) error {
	for _, wait := range waits {
		if wait.Judge != nil {
			continue // compiled with its profile
		}
		if _, err := e.program(wait.Expression); err != nil {
			return fmt.Errorf("waiting for %q: %w", wait.Expression, err)
		}
	}
	return nil
}

// For judges a live target; live is nil if it is not observed. While an expression cannot be
// evaluated, for example because status is missing, the target waits.
func (e *Expressions) For(ctx context.Context, waits []profile.Wait, live *unstructured.Unstructured) Verdict {
	for _, wait := range waits {
		if live == nil {
			return Verdict{State: Waiting, Message: "waiting to see its state"}
		}
		if wait.Judge != nil {
			if verdict := judged(wait, live); verdict.State != Done {
				return verdict
			}
			continue
		}
		program, err := e.program(wait.Expression)
		if err != nil {
			return Verdict{State: Failed, Message: err.Error()}
		}
		message := wait.Message
		if message == "" {
			message = "waiting for " + wait.Expression
		}
		switch healthy, err := program.Eval(ctx, live.Object); {
		case err != nil:
			return Verdict{State: Waiting, Message: unevaluated(message, err)}
		case !healthy:
			return Verdict{State: Waiting, Message: message}
		}
	}
	return Verdict{State: Done}
}

// judged returns the verdict of a wait of a profile.
func judged(wait profile.Wait, live *unstructured.Unstructured) Verdict {
	holds, message, err := wait.Judge(live.Object)
	switch {
	case err != nil:
		return Verdict{State: Waiting, Message: unevaluated(message, err)}
	case !holds:
		return Verdict{State: Waiting, Message: message}
	default:
		return Verdict{State: Done}
	}
}

// noSuchKey begins CEL's error about a missing field.
const noSuchKey = "no such key: "

// unevaluated returns the message about an expression that cannot be evaluated. A missing field,
// usually status, is not an error during a wait.
func unevaluated(message string, err error) string {
	if _, key, missing := strings.Cut(err.Error(), noSuchKey); missing {
		return fmt.Sprintf("%s: the object has no %s yet", cmp.Or(message, "waiting"), key)
	}
	return fmt.Sprintf("%s (%s)", message, err)
}

func (e *Expressions) program(expression string) (*probe.Program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if program, known := e.programs[expression]; known {
		return program, nil
	}
	program, err := probe.CompileCEL(expression)
	if err != nil {
		return nil, err
	}
	if e.programs == nil {
		e.programs = map[string]*probe.Program{}
	}
	e.programs[expression] = program
	return program, nil
}
