package diff

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// path is a place in a document, as a list from the leaf to the root: most
// places are never printed.
type path struct {
	parent *path
	// step is printed as it is.
	step string
}

func (p *path) append(step string) *path {
	return &path{parent: p, step: step}
}

const pathBytes = 2048

// String prints the path; of one that is longer than anybody can read, the
// start and the end.
func (p *path) String() string {
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
	head, tail := cut(s, pathBytes/2), s[len(s)-pathBytes/4:]
	return fmt.Sprintf("%s ... (%d bytes) ... %s", head, len(s)-len(head)-len(tail), strings.ToValidUTF8(tail, ""))
}

func fieldStep(name string) string {
	if manifest.IsIdentifier(name) {
		return "." + name
	}
	return "[" + quote(name) + "]"
}

func indexStep(i int) string {
	return "[" + strconv.Itoa(i) + "]"
}
