package render

import (
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/redact"
)

// valueDepth limits the depth of a value in a field change. A deeper value would exceed the depth
// limit of clients' decoders and make the whole answer unreadable.
const valueDepth = 64

// Value is a node as JSON.
type Value struct {
	// JSON is compact, with unprintable characters escaped and hidden values as the string "***".
	// It is empty for a nil node.
	JSON string
	// Redacted is true if a part of the value is hidden, Hidden if the whole value is hidden.
	Redacted, Hidden bool
	// TooDeep is true if the value is nested deeper than 64 levels.
	TooDeep bool
}

// JSON returns a node as JSON. The node may be nil.
func JSON(n *tree.Node) Value {
	if n == nil {
		return Value{}
	}
	w := jsonWriter{literal: true}
	w.write(n, 0)
	return Value{JSON: w.String(), Redacted: w.redacted, Hidden: n.Kind() == tree.Hidden, TooDeep: w.tooDeep}
}

// jsonWriter writes nodes as compact JSON with unprintable characters escaped.
type jsonWriter struct {
	strings.Builder
	// literal is set for output that clients decode and print again (printable.Literal).
	literal           bool
	redacted, tooDeep bool
}

func (w *jsonWriter) text(s string) {
	if w.literal {
		s = printable.Literal(s)
	}
	w.WriteString(printable.Quote(s))
}

func (w *jsonWriter) write(n *tree.Node, depth int) {
	w.tooDeep = w.tooDeep || depth > valueDepth
	switch n.Kind() {
	case tree.Hidden:
		w.redacted = true
		w.WriteString(`"` + redact.Hidden + `"`)
	case tree.Object:
		w.WriteByte('{')
		for i, f := range n.Fields() {
			if i > 0 {
				w.WriteByte(',')
			}
			w.text(f.Name)
			w.WriteByte(':')
			w.write(f.Value, depth+1)
		}
		w.WriteByte('}')
	case tree.List:
		w.WriteByte('[')
		for i, item := range n.Items() {
			if i > 0 {
				w.WriteByte(',')
			}
			w.write(item, depth+1)
		}
		w.WriteByte(']')
	default:
		if s, ok := n.Scalar().(string); ok {
			w.text(s)
			return
		}
		w.WriteString(printable.Scalar(n.Scalar()))
	}
}
