// Package outcome has the exit codes of the plugin, the same for all commands.
package outcome

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Code is the exit code of the process.
type Code int

// These are the exit codes.
const (
	// OK means that the requested condition holds.
	OK Code = 0
	// No means that the requested condition does not hold: there are differences, or a rollout
	// failed.
	No Code = 1
	// Unknown means that the command could not find out: wrong usage, missing rights, or a server
	// that does not answer.
	Unknown Code = 2
	// Conflict means that an object changed after it was shown.
	Conflict Code = 3
	// TimedOut means that the time limit was reached.
	TimedOut Code = 124
	// Interrupted means that a user stopped the command.
	Interrupted Code = 130
)

// Error is an error with a code. Without an inner error, nothing is printed, because the output is
// complete.
type Error struct {
	Code Code
	Err  error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns the inner error.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error with a code.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// Quiet returns an error for a command whose output is complete.
func Quiet(code Code) error { return &Error{Code: code} }

// Of returns the exit code of an error.
func Of(err error) Code {
	var own *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return Conflict
	default:
		return Unknown
	}
}
