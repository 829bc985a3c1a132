package review

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

// Severity is the importance of a note: note.Critical, note.Warning or note.Info.
type Severity = note.Severity

// Note is one important fact about a change, as text.
type Note struct {
	Severity Severity
	// Reason is one word, such as "Immutable"; note.Reasons lists all.
	Reason string
	// ID of the object that the note is about.
	manifest.ID
	// Message is one line for users, such as "image of container manager: example.com/a:1 ->
	// example.com/a:2". It does not name the object.
	Message string
}

// String returns the note as text.
func (n Note) String() string {
	return fmt.Sprintf("%s: %s: %s", n.Severity, printable.Line(n.ID.String()), n.Message)
}

// Sort sorts notes by severity, the most severe first, and keeps the order of notes with the same
// severity.
func Sort(notes []Note) {
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Compare(a.Severity.Rank(), b.Severity.Rank()) })
}
