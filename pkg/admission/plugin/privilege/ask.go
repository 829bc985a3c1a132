package privilege

import "github.com/penstock-project/penstock/pkg/authz"

// ask is a right that a change needs, with its purpose if the right alone does not show it.
type ask struct {
	authz.Right
	// because names the object of the revision that grants the right.
	because string
	// refusal is set in place of a right: it is the reason why no right allows the change.
	refusal string
	// shownTo is the right to read the object that this ask reveals. It is empty if the requester
	// sent the object.
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
