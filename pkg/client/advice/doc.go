// Package advice says what holds an extension or a plan back, and who must do what. It is
// a function of what the API shows, so commands and consoles say the same.
//
// Reasons are data (see reasons.go): each that the program writes has an entry, which a
// test keeps complete.
package advice

import "strings"

// Who has to do something.
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
)

// Advice is what to know and to do.
type Advice struct {
	// Subject is the revision or plan that it is about.
	Subject string `json:"subject,omitempty"`
	// What is how it is, in words that follow the subject: "is paused".
	What string `json:"what"`
	// Because is what the program says of it; empty when there is nothing to say. It comes
	// from the server, so whoever prints it on a terminal removes control characters.
	Because string `json:"because,omitempty"`
	// Reason is the reason of the condition that decided, empty for none.
	Reason string `json:"reason,omitempty"`
	// Who must do what Do says.
	Who Who `json:"who"`
	// Do is the next step, in words that follow "must": "resume it". Of Nobody it says what
	// comes next, as a sentence, or is empty.
	Do string `json:"do,omitempty"`
	// Command does it, where one command does; empty for none.
	Command string `json:"command,omitempty"`
}

// String is the advice in one paragraph.
func (a Advice) String() string {
	var out strings.Builder
	out.WriteString(strings.TrimSpace(a.Subject + " " + a.What))
	if a.Because != "" {
		out.WriteString(": " + strings.TrimRight(a.Because, "."))
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
