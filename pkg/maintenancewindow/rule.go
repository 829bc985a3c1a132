package maintenancewindow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/penstock-project/penstock/pkg/window"
)

// Window is a parsed MaintenanceWindow.
type Window struct {
	Name string
	deny bool
	// extensions selects extensions by their labels; nil selects all.
	extensions labels.Selector
	recurs     *window.Window
	once       window.Span
	// problem is the reason why the window cannot be read. An unreadable window blocks all upgrades
	// of the extensions that it selects.
	problem string
}

// New parses a MaintenanceWindow. An unreadable window blocks the upgrades of the extensions that
// it selects, or of all extensions if its selector is unreadable.
func New(of *MaintenanceWindow) Window {
	w := Window{Name: of.Name, deny: of.Spec.Type == TypeDeny}
	selector, err := metav1.LabelSelectorAsSelector(of.Spec.ExtensionSelector)
	if of.Spec.ExtensionSelector != nil && err == nil {
		w.extensions = selector
	}
	if errs := Validate(&of.Spec); len(errs) > 0 {
		w.problem = errs.ToAggregate().Error()
		return w
	}
	if of.Spec.Start != nil {
		w.once = window.Span{Opens: of.Spec.Start.Truncate(time.Second), Closes: of.Spec.End.Truncate(time.Second)}
		return w
	}
	if w.recurs, err = window.New(of.Spec.Schedule, of.Spec.zone(), of.Spec.Duration.Duration); err != nil {
		w.problem = err.Error()
	}
	return w
}

// NewAll parses MaintenanceWindows, in the order of their names.
func NewAll(objects []unstructured.Unstructured) []Window {
	all := make([]Window, len(objects))
	for i := range objects {
		read, err := From(&objects[i])
		if err != nil {
			all[i] = Window{Name: objects[i].GetName(), problem: err.Error()}
			continue
		}
		all[i] = New(read)
	}
	slices.SortFunc(all, func(a, b Window) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Problem returns the reason why the window cannot be read, or "".
func (w Window) Problem() string { return w.problem }

// Selects reports whether the window applies to an extension with these labels.
func (w Window) Selects(of map[string]string) bool {
	return w.extensions == nil || w.extensions.Matches(labels.Set(of))
}

// At returns the present opening, or else the next one. It is zero if there is none, or if the
// window cannot be read.
func (w Window) At(now time.Time) (span window.Span, open bool) {
	switch {
	case w.problem != "":
		return window.Span{}, false
	case w.recurs != nil:
		return w.recurs.At(now)
	case now.Before(w.once.Closes):
		return w.once, !now.Before(w.once.Opens)
	}
	return window.Span{}, false
}

// Decision is whether an upgrade may begin.
type Decision struct {
	Open bool
	// By is the name of the window that blocks the upgrade, and Why is the reason.
	By, Why string
	// Opens is set if Open is false: the time from which the upgrade may begin, zero for never or
	// unknown. Closes is set if Open is true: the time until which the upgrade may begin, zero for
	// no end or unknown. Both are valid while the windows do not change.
	Opens, Closes time.Time
}

// String returns the reason why an upgrade cannot begin, and the time at which it may.
func (d Decision) String() string {
	if d.Opens.IsZero() {
		return d.Why
	}
	return fmt.Sprintf("%s; it may begin at %s", d.Why, d.Opens.UTC().Format(time.RFC3339))
}

// steps bounds the openings and closings that are checked for the next change of a decision. Beyond
// them the change is unknown.
const steps = 512

// Decide reports whether an upgrade of an extension with these labels may begin. No Deny window
// that selects it may be open. If Allow windows select it, one of them must be open. Unreadable
// windows block upgrades.
func Decide(all []Window, of map[string]string, now time.Time) Decision {
	var mine []Window
	for _, w := range all {
		if !w.Selects(of) {
			continue
		}
		if w.problem != "" {
			return Decision{By: w.Name, Why: fmt.Sprintf("MaintenanceWindow %s cannot be read, and holds upgrades until it can: %s", w.Name, w.problem)}
		}
		mine = append(mine, w)
	}
	decided, until := decideAt(mine, now)
	for range steps {
		if until.IsZero() {
			break
		}
		at := until
		var then Decision
		if then, until = decideAt(mine, at); then.Open == decided.Open {
			continue
		}
		if decided.Open {
			decided.Closes = at
		} else {
			decided.Opens = at
		}
		break
	}
	return decided
}

// decideAt decides at a moment, by readable windows. until is the time at which the decision may
// change; zero for never.
func decideAt(mine []Window, at time.Time) (decided Decision, until time.Time) {
	var denied, allowed string
	var allow []string
	for _, w := range mine {
		span, open := w.At(at)
		change := span.Opens
		if open {
			change = span.Closes
		}
		if !change.IsZero() && (until.IsZero() || change.Before(until)) {
			until = change
		}
		switch {
		case w.deny && open && denied == "":
			denied = w.Name
		case !w.deny && open && allowed == "":
			allowed = w.Name
		}
		if !w.deny {
			allow = append(allow, w.Name)
		}
	}
	switch {
	case denied != "":
		decided.By, decided.Why = denied, fmt.Sprintf("MaintenanceWindow %s, of type Deny, is open", denied)
	case len(allow) > 0 && allowed == "":
		decided.By, decided.Why = allow[0], "MaintenanceWindow "+strings.Join(allow, ", ")+", of type Allow, is closed"
	default:
		decided.Open, decided.By = true, allowed
	}
	return decided, until
}
