package render

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/tree"
)

// Limits bound a unified diff.
type Limits struct {
	// Bytes is the size of the hunks, and LineBytes that of one line: a longer one is cut
	// around what differs, and what is cut is replaced by its length.
	Bytes, LineBytes int
	// ContextLines are printed before and after each change.
	ContextLines int
}

// Unified is a unified diff of two manifests as YAML with sorted keys.
type Unified struct {
	// Hunks is all but the names of the files, at most as long as the limit; empty
	// when no line differs, or none fits.
	Hunks string
	// AddedLines and RemovedLines count the lines that differ, whether they are
	// in Hunks or not.
	AddedLines, RemovedLines int
	// LeftOut counts the lines that belong into hunks and did not fit, or of which a part that
	// differs did not.
	LeftOut int
}

// NewUnified writes a difference as a unified diff. When stop says that time ran
// out, values are written on one line.
func NewUnified(d tree.Delta, limits Limits, stop func() bool) Unified {
	h := &hunks{limits: limits}
	printer := &yamlPrinter{hunks: h, stop: stop}
	switch d.Op {
	case tree.Added:
		printer.object(newSide, d.New, 0)
	case tree.Removed:
		printer.object(oldSide, d.Old, 0)
	default:
		printer.fieldsDelta(d, 0)
	}
	h.finish()
	return Unified{Hunks: h.out.String(), AddedLines: h.addedLines, RemovedLines: h.removedLines, LeftOut: h.left}
}

// Text is the diff with the names of both files, empty when it has no hunks.
func (u Unified) Text(oldFile, newFile string) string {
	if u.Hunks == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n", oldFile)
	fmt.Fprintf(&b, "+++ %s\n", newFile)
	b.WriteString(u.Hunks)
	if u.LeftOut > 0 {
		fmt.Fprintf(&b, "\\ %d more lines\n", u.LeftOut)
	}
	return b.String()
}
