// Package advice says why an extension or a plan waits, and who must do what. It is a function of
// the data of the API. Lists, why, upgrades, exit codes and the console use Extension and Plan, so
// their answers agree.
//
// Reasons are data (reasons.go). Each reason that the program writes has an entry; a test checks
// that.
package advice

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/client/overview"
)

// Signal is the state of an object in one word. Each screen has a glyph and a colour for it.
type Signal string

// Signals.
const (
	// Healthy: the object is in its requested state.
	Healthy Signal = "well"
	// InProgress continues by itself.
	InProgress Signal = "moving"
	// NeedsAttention waits for a person.
	NeedsAttention Signal = "needs"
	// Stopped: the object is not rolled out, because a user wants that.
	Stopped Signal = "stopped"
	// Review waits until somebody has read it: a proposal, or an upgrade that is refused while
	// the installed version is well.
	Review Signal = "review"
)

// urgency orders signals, the most urgent first.
func (s Signal) urgency() int {
	switch s {
	case NeedsAttention:
		return 0
	case Review:
		return 1
	case Stopped:
		return 2
	case InProgress:
		return 3
	default:
		return 4
	}
}

// Who names the actor of an advice.
type Who string

const (
	// Nobody: it continues by itself, or is as it should be.
	Nobody Who = "nobody"
	// Author makes the revisions of the extension, by hand or in a pipeline, or the plan.
	Author Who = "the author of the revisions"
	// Administrator has the rights in the cluster that is rolled out into.
	Administrator Who = "an administrator of the cluster"
	// Operator keeps Penstock running.
	Operator Who = "an administrator of Penstock"
	// Approver may approve plans.
	Approver Who = "an approver of plans"
	// Planner made the plan.
	Planner Who = "the author of the plan"
	// Owner wrote the ClusterExtension.
	Owner Who = "the author of the extension"
	// Reviewer may approve revisions.
	Reviewer Who = "an approver"
)

// Advice is a fact to know and the action to take.
type Advice struct {
	// Signal is the answer in one word.
	Signal Signal `json:"signal"`
	// Subject is the revision, the extension or the plan that it is about.
	Subject string `json:"subject,omitempty"`
	// What says the state, in words that follow the subject: "is paused".
	What string `json:"what"`
	// Because is the program's own message about it, or empty. It comes from the server, so the
	// caller that prints it on a terminal removes control characters.
	Because string `json:"because,omitempty"`
	// Reason is the reason of the condition that decided, empty for none.
	Reason string `json:"reason,omitempty"`
	// Cause is the reason why an object is not ready, such as ImagePullBackOff; empty when unknown.
	Cause string `json:"cause,omitempty"`
	// Since is the time when the state began; zero when unknown.
	Since metav1.Time `json:"since,omitzero"`
	// Who must follow Do.
	Who Who `json:"who"`
	// Do is the next step, in words that follow "must": "resume it". For Nobody it is empty or a
	// sentence about the next event.
	Do string `json:"do,omitempty"`
	// Command does it, where one command does; empty for none.
	Command string `json:"command,omitempty"`

	// alone replaces Do and Command where there is no revision to roll back to; nil for the same.
	alone *answer
}

// State is the reason in one word: why an object is not ready says more than that it is not.
func (a Advice) State() string { return cmp.Or(a.Cause, a.Reason) }

// Announced is Because without the file that it may end with, and the words before that.
func (a Advice) Announced() string { return overview.Announced(a.Because) }

// String is the advice in one paragraph.
func (a Advice) String() string {
	var out strings.Builder
	out.WriteString(strings.TrimSpace(a.Subject + " " + a.What))
	if a.Because != "" {
		out.WriteString(": " + strings.TrimRight(a.Because, ".:"))
	}
	out.WriteString(".")
	switch {
	case a.Do == "":
	case a.Who == Nobody:
		out.WriteString(" " + a.Do + ".")
	default:
		out.WriteString(" " + strings.ToUpper(string(a.Who[:1])) + string(a.Who[1:]) + " must " + a.Do + ".")
	}
	if a.Command != "" {
		out.WriteString(" The command: " + a.Command)
	}
	return out.String()
}

// commandIn is the command that a message of the program ends in, and the message before it.
func commandIn(message string) (before, command string) {
	if i := strings.LastIndex(message, ": kubectl "); i >= 0 {
		return message[:i], message[i+len(": "):]
	}
	return message, ""
}
