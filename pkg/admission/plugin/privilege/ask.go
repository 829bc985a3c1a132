package privilege

import "github.com/penstock-project/penstock/pkg/authz"

// ask is a right that a change needs, with its purpose unless the right itself shows it.
type ask struct {
	authz.Right
	// because names the object of the revision that hands the right on.
	because string
	// refusal is a reason, in words, that no right can overcome, in place of a right.
	refusal string
	// shownTo is the right to read what this ask is about, as it tells it; none
	// when the requester brought it.
	shownTo authz.Right
}

// String returns the right as the list of missing rights shows it.
func (a ask) String() string {
	if a.refusal != "" {
		return a.refusal
	}
	if a.because == "" {
		return a.Right.String()
	}
	return a.Right.String() + " (" + a.because + ")"
}
