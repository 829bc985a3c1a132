package render

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/tree"
)

// Limits limit a unified diff.
type Limits struct {
	// Bytes is the size of the hunks, and LineBytes the size of one line. A longer line is
	// shortened to the part that differs; each omitted part is replaced by its length.
	Bytes, LineBytes int
	// ContextLines is the number of lines before and after each change.
	ContextLines int
}

// Unified is a unified diff of two manifests as YAML with sorted keys.
type Unified struct {
	// Hunks is the diff without the file names, within the limit; empty if no line differs, or none
	// fits.
	Hunks string
	// AddedLines and RemovedLines count all differing lines, including omitted ones.
	AddedLines, RemovedLines int
	// LeftOut counts the lines of hunks that did not fit, completely or in a part that differs.
	LeftOut int
}

// NewUnified returns a difference as a unified diff. When stop returns true, values are written on
// one line.
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

// Text returns the diff with the names of both files; empty if it has no hunks.
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
