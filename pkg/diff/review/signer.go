package review

import (
	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/note"
)

// Signer notes that another one signed the image of a revision than that of the revision before. Lost
// names the signers that are lost, in words of the image and its policy.
func Signer(lost string) Note {
	return Note{Severity: note.Critical, Reason: note.Signer, Message: printable.Line(lost)}
}
