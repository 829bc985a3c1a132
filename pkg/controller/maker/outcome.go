package maker

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/klog/v2"
)

// Reason is the result of a pass, in one word. Front ends add their own reasons.
type Reason string

// Reasons of the maker.
const (
	// Current: the newest revision has the desired content.
	Current Reason = "Current"
	// Proposed: a revision with the desired content waits for approval.
	Proposed Reason = "Proposed"
	// Awaited: a watch causes the next pass, which reports the result.
	Awaited Reason = "Awaited"
	// Rendering: the content is being pulled or rendered, and the result causes the next pass.
	Rendering Reason = "Rendering"
	// Outdated: the pass worked with outdated facts.
	Outdated Reason = "Outdated"
	// Held: a rollback holds the chain.
	Held Reason = "Held"
	// Unreadable: the record of a revision cannot be read. Its change causes the next pass.
	Unreadable Reason = "Unreadable"
	// Denied: the identity lacks a right.
	Denied Reason = "Denied"
	// Refused: a policy or a quota refused the revision.
	Refused Reason = "Refused"
	// Invalid: the content cannot be stored as a revision.
	Invalid Reason = "Invalid"
	// Failed: an error that may go away by itself.
	Failed Reason = "Failed"
)

// Outcome is the result of a pass, with its reason.
type Outcome struct {
	Reason Reason
	// Message and Why are for users: the event, and the remedy.
	Message, Why string
	// Again requests another pass without a change.
	Again bool
	// Err is for the log; nil for an outcome that the status alone reports.
	Err error
}

// Stop ends a pass until an input changes.
func Stop(reason Reason, message, why string) *Outcome {
	return &Outcome{Reason: reason, Message: message, Why: why}
}

// Retry ends a pass, and retries it after a delay.
func Retry(reason Reason, err error) *Outcome {
	return &Outcome{Reason: reason, Message: err.Error(), Again: true, Err: err}
}

// Later makes an outcome be retried after a delay, without a change.
func (o *Outcome) Later() *Outcome { o.Again = true; return o }

func outdated() *Outcome { return &Outcome{Reason: Outdated, Again: true} }

// IsQuiet reports whether an outcome leaves the status unchanged.
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

// ErrAgain requests another pass from a queue after a delay. The status has the cause already.
var ErrAgain = errors.New("to be tried again")

// ErrRendering ends a pass that waits for content. The result causes the next pass.
var ErrRendering = errors.New("being pulled or rendered")

func failed(format string, args ...any) *Outcome { return Retry(Failed, fmt.Errorf(format, args...)) }
