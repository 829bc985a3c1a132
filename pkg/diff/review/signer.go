package review

import (
	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/note"
)

// Signer returns the note that another signer signed the new image than the old image. lost names
// the missing signers, in terms of the image and its policy.
func Signer(lost string) Note {
	return Note{Severity: note.Critical, Reason: note.Signer, Message: printable.Line(lost)}
}
