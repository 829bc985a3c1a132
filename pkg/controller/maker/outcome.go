package maker

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/klog/v2"
)

// Reason is the result of a pass in one word. Front ends have reasons of their own besides these.
type Reason string

// Reasons of the maker.
const (
	// Current: the newest revision is what is desired.
	Current Reason = "Current"
	// Proposed: a revision of what is desired waits for approval.
	Proposed Reason = "Proposed"
	// Awaited: a watch brings the next pass, and that one says what there is to say.
	Awaited Reason = "Awaited"
	// Rendering: the content is pulled or rendered, and the result brings the next pass.
	Rendering Reason = "Rendering"
	// Outdated: the pass knew less than there is.
	Outdated Reason = "Outdated"
	// Held: a rollback holds the chain.
	Held Reason = "Held"
	// Unreadable: the record of a revision cannot be read. Its change brings the next pass.
	Unreadable Reason = "Unreadable"
	// Denied: the identity lacks a right.
	Denied Reason = "Denied"
	// Refused: a policy or a quota refused the revision.
	Refused Reason = "Refused"
	// Invalid: the content is no revision that can be stored.
	Invalid Reason = "Invalid"
	// Failed: an error that may go away by itself.
	Failed Reason = "Failed"
)

// Outcome is the result of a pass, with its reason.
type Outcome struct {
	Reason Reason
	// Message and Why are for people: what happened, and what helps.
	Message, Why string
	// Again requests another pass although nothing changed.
	Again bool
	// Err is for the log; nil for an outcome that the status alone reports.
	Err error
}

// Stop ends a pass until something changes.
func Stop(reason Reason, message, why string) *Outcome {
	return &Outcome{Reason: reason, Message: message, Why: why}
}

// Retry ends a pass until a while later.
func Retry(reason Reason, err error) *Outcome {
	return &Outcome{Reason: reason, Message: err.Error(), Again: true, Err: err}
}

// Later has an outcome tried again a while later, although nothing has changed.
func (o *Outcome) Later() *Outcome { o.Again = true; return o }

func outdated() *Outcome { return &Outcome{Reason: Outdated, Again: true} }

// IsQuiet is true for an outcome that leaves the status as it is.
func (o *Outcome) IsQuiet() bool {
	return o.Reason == Awaited || o.Reason == Rendering || o.Reason == Outdated
}

// End logs an outcome, calls say to write the status, and returns the result for the queue.
func (o *Outcome) End(ctx context.Context, object string, say func() error) error {
	if ctx.Err() != nil {
		return nil
	}
	if o.Err != nil {
		klog.FromContext(ctx).Error(o.Err, "No revision was made", "object", object, "reason", o.Reason)
	}
	if !o.IsQuiet() {
		if err := say(); err != nil {
			return err
		}
	}
	switch {
	case o.Again:
		return ErrAgain
	case o.Reason == Rendering:
		return ErrRendering
	}
	return nil
}

// ErrAgain requests another pass from a queue, after a while. The status has the cause already.
var ErrAgain = errors.New("to be tried again")

// ErrRendering ends a pass that waits for content: the result brings the next one.
var ErrRendering = errors.New("being pulled or rendered")

func failed(format string, args ...any) *Outcome { return Retry(Failed, fmt.Errorf(format, args...)) }
