package governance

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/window"
)

// terms are the fields of spec that an approval covers in addition to the changes: the time, the
// required profiles, and the number of approvers. The hash of a plan without terms is the same as
// before terms existed.
type terms struct {
	Window    *v1alpha1.PlanWindow `json:",omitempty"`
	Expires   *metav1.Time         `json:",omitempty"`
	Approvals int32                `json:",omitempty"`
	// Requires are the sorted profiles as one text, so that terms are comparable.
	Requires string `json:",omitempty"`
}

func termsOf(spec v1alpha1.ConfigurationPlanSpec) terms {
	bound := terms{Window: spec.Window, Expires: spec.Expires, Approvals: spec.Approvals, Requires: required(spec)}
	if bound.Approvals == 1 {
		bound.Approvals = 0 // the default
	}
	return bound
}

// Turn reports whether an item of a plan may begin.
type Turn struct {
	// Open is true if the window is open.
	Open bool
	// Expired is true if spec.expires has passed.
	Expired bool
	// Window is the open or the next window; nil for a plan without a window.
	Window *v1alpha1.PlanWindowStatus
	// In is the time after which the answer may change; 0 means never.
	In time.Duration
}

// TurnAt reports whether an item of a plan may begin at a time. It returns an error for an invalid
// window. Then no item may begin.
func TurnAt(spec v1alpha1.ConfigurationPlanSpec, now time.Time) (Turn, error) {
	turn := Turn{Open: true}
	if spec.Expires != nil {
		left := spec.Expires.Sub(now)
		turn.Expired, turn.In = left <= 0, max(left, 0)
	}
	if spec.Window == nil {
		return turn, nil
	}
	recurs, err := window.New(spec.Window.Schedule, spec.Window.TimeZone, spec.Window.Duration.Duration)
	if err != nil {
		return Turn{}, fmt.Errorf("reading spec.window: %w", err)
	}
	span, open := recurs.At(now)
	if span.Opens.IsZero() {
		return Turn{}, fmt.Errorf("reading spec.window: schedule %q has no later time", spec.Window.Schedule)
	}
	turn.Open = open
	turn.Window = &v1alpha1.PlanWindowStatus{OpensAt: metav1.NewTime(span.Opens.UTC()), ClosesAt: metav1.NewTime(span.Closes.UTC()), Local: recurs.Local(span.Opens)}
	next := span.Opens.Sub(now)
	if open {
		next = span.Closes.Sub(now)
	}
	if turn.In == 0 || next < turn.In {
		turn.In = next
	}
	return turn, nil
}

// Begins describes when a plan that waits for its window begins, and whether that is after its end.
func (t Turn) Begins(spec v1alpha1.ConfigurationPlanSpec) string {
	said := fmt.Sprintf("its window opens at %s (%s)", t.Window.OpensAt.UTC().Format(time.RFC3339), t.Window.Local)
	if spec.Expires != nil && !spec.Expires.After(t.Window.OpensAt.Time) {
		said += fmt.Sprintf("; before that, at %s, it expires", spec.Expires.UTC().Format(time.RFC3339))
	}
	return said
}

// Overdue returns the message that a plan was not executed in time.
func Overdue(spec v1alpha1.ConfigurationPlanSpec) string {
	return fmt.Sprintf("it was not executed before spec.expires, %s: set a later time, and approve the plan that is then computed", spec.Expires.UTC().Format(time.RFC3339))
}
