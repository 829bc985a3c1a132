package tree

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// Path is a position in a document. It is linked from the leaf to the root, because most paths are
// never printed.
type Path struct {
	parent *Path
	// step is the printed form.
	step string
}

// Append returns the path extended by a step, such as [3] or [name="x"].
func (p *Path) Append(step string) *Path {
	return &Path{parent: p, step: step}
}

// Field returns the path of a field.
func (p *Path) Field(name string) *Path { return p.Append(fieldStep(name)) }

// IsRoot reports whether the path is the path of the document itself.
func (p *Path) IsRoot() bool { return p.parent == nil }

// pathBytes is the approximate maximum length of a printed path.
const pathBytes = 2048

// String returns the path as text. It shortens a very long path to its start and end.
func (p *Path) String() string {
	var steps []string
	total := 0
	for at := p; at != nil && at.step != ""; at = at.parent {
		steps = append(steps, at.step)
		total += len(at.step)
	}
	var b strings.Builder
	b.Grow(total)
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteString(steps[i])
	}
	s := b.String()
	if len(s) <= pathBytes {
		return s
	}
	head, tail := text.Cut(s, pathBytes/2), s[len(s)-pathBytes/4:]
	return fmt.Sprintf("%s ... (%d bytes) ... %s", head, len(s)-len(head)-len(tail), strings.ToValidUTF8(tail, ""))
}

func fieldStep(name string) string {
	if manifest.IsIdentifier(name) {
		return "." + name
	}
	return "[" + printable.Quote(name) + "]"
}

func indexStep(i int) string {
	return "[" + strconv.Itoa(i) + "]"
}
