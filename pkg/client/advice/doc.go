// Package advice returns why an extension or a plan waits, and who must do what. It is a function
// of the data of the API. Lists, why, upgrades, exit codes and the console use Extension and Plan,
// so their answers agree.
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

// These are the signals.
const (
	// Healthy: the object is in its requested state.
	Healthy Signal = "well"
	// InProgress continues by itself.
	InProgress Signal = "moving"
	// NeedsAttention waits for a user.
	NeedsAttention Signal = "needs"
	// Stopped: the object is not rolled out, because a user wants that.
	Stopped Signal = "stopped"
	// Review waits for the review of a proposal, or of a refused upgrade while the installed
	// version is healthy.
	Review Signal = "review"
)

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
	// Nobody: the object continues by itself, or is in its requested state.
	Nobody Who = "nobody"
	// Author creates the revisions of the extension, by hand or in a pipeline, or the plan.
	Author Who = "the author of the revisions"
	// Administrator has the rights in the target cluster.
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

// Advice is a state and the action to take.
type Advice struct {
	// Signal is the answer in one word.
	Signal Signal `json:"signal"`
	// Subject is the name of the revision, the extension or the plan.
	Subject string `json:"subject,omitempty"`
	// What is the state, in words that follow the subject: "is paused".
	What string `json:"what"`
	// Because is the program's own message about the state, or empty. It comes from the server, so
	// callers that print it on a terminal must remove control characters.
	Because string `json:"because,omitempty"`
	// Reason is the reason of the condition that decided; empty for none.
	Reason string `json:"reason,omitempty"`
	// Cause is the reason why an object is not ready, such as ImagePullBackOff; empty when unknown.
	Cause string `json:"cause,omitempty"`
	// Since is the time when the state began; zero when unknown.
	Since metav1.Time `json:"since,omitzero"`
	// Who must follow Do.
	Who Who `json:"who"`
	// Do is the next step, in words that follow "must": "resume it". For Nobody it is empty, or a
	// sentence about the next event.
	Do string `json:"do,omitempty"`
	// Command performs Do, if a single command can; otherwise empty.
	Command string `json:"command,omitempty"`

	// alone replaces Do and Command if there is no revision to roll back to; nil keeps them.
	alone *answer
}

// State returns the cause of an unready object if it is known, or else the reason.
func (a Advice) State() string { return cmp.Or(a.Cause, a.Reason) }

// Announced returns Because without a file at its end and the words that introduce the file.
func (a Advice) Announced() string { return overview.Announced(a.Because) }

// String returns the advice in one paragraph.
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

// commandIn returns the command at the end of a message, and the message before it.
func commandIn(message string) (before, command string) {
	if i := strings.LastIndex(message, ": kubectl "); i >= 0 {
		return message[:i], message[i+len(": "):]
	}
	return message, ""
}
