package diff

import (
	"encoding/json"
	"strings"

	"github.com/penstock-project/penstock/pkg/redact"
)

// hiddenText stands for a value that is redacted.
const hiddenText = redact.Hidden

// valueDepth is how deep a value of a field change may be nested. A deeper one
// would make the whole answer unreadable for clients, whose decoders have limits
// of their own.
const valueDepth = 64

// fieldList turns a delta into field changes, within limits.
type fieldList struct {
	changes   []FieldChange
	truncated Truncation
	// left and leftBytes are what the whole report may still show.
	left, leftBytes *int
	limits          Limits
}

func (l *fieldList) add(at *path, d delta, index int) {
	switch d.op {
	case deltaSame:
	case deltaInside:
		l.inside(at, d)
	default:
		if !l.room() {
			return
		}
		change := FieldChange{Path: at.String(), Op: operation(d.op)}
		if index >= 0 {
			change.Index = &index
		}
		l.setValues(&change, d)
		l.changes = append(l.changes, change)
	}
}

func (l *fieldList) inside(at *path, d delta) {
	if d.newKeys != nil && l.room() {
		change := FieldChange{Path: at.String(), Op: Reorder}
		l.show(&change, rendered{text: array(d.oldKeys)}, rendered{text: array(d.newKeys)})
		l.changes = append(l.changes, change)
	}
	for _, c := range d.children {
		if c.moved != movedAway {
			l.add(at.append(c.step), c.delta, c.index)
		}
	}
}

// room tells whether one more change may be shown, and counts it.
func (l *fieldList) room() bool {
	if len(l.changes) >= l.limits.Fields || *l.left <= 0 {
		l.truncated.Fields++
		return false
	}
	*l.left--
	return true
}

func operation(op deltaOp) Op {
	switch op {
	case deltaAdded:
		return Add
	case deltaRemoved:
		return Remove
	default:
		return Replace
	}
}

func (l *fieldList) setValues(change *FieldChange, d delta) {
	l.show(change, render(d.old), render(d.new))
}

// show puts values into a change, unless they are too large or hidden.
func (l *fieldList) show(change *FieldChange, old, new rendered) {
	change.Redacted = old.redacted || new.redacted
	for _, value := range []struct {
		rendered
		target *json.RawMessage
	}{{old, &change.Old}, {new, &change.New}} {
		size := len(value.text)
		switch {
		case size == 0 || value.hidden:
		case size > l.limits.ValueBytes || size > *l.leftBytes || value.tooDeep:
			change.Truncated += size
		default:
			*value.target = json.RawMessage(value.text)
			*l.leftBytes -= size
		}
	}
	if change.Truncated > 0 {
		l.truncated.Values++
	}
}

func array(values []string) string {
	return "[" + strings.Join(values, ",") + "]"
}

// rendered is a node as JSON.
type rendered struct {
	text string
	// redacted tells that something in it is hidden, hidden that all is.
	redacted, hidden bool
	tooDeep          bool
}

func render(n *node) rendered {
	if n == nil {
		return rendered{}
	}
	var w jsonWriter
	w.write(n, 0)
	return rendered{text: w.String(), redacted: w.redacted, hidden: n.kind == hiddenNode, tooDeep: w.tooDeep}
}

// jsonWriter writes nodes as compact JSON. Characters that do not print are
// escaped.
type jsonWriter struct {
	strings.Builder
	redacted, tooDeep bool
}

func (w *jsonWriter) write(n *node, depth int) {
	w.tooDeep = w.tooDeep || depth > valueDepth
	switch n.kind {
	case hiddenNode:
		w.redacted = true
		w.WriteString(`"` + hiddenText + `"`)
	case objectNode:
		w.WriteByte('{')
		for i, f := range n.fields {
			if i > 0 {
				w.WriteByte(',')
			}
			w.WriteString(quote(f.name))
			w.WriteByte(':')
			w.write(f.node, depth+1)
		}
		w.WriteByte('}')
	case listNode:
		w.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				w.WriteByte(',')
			}
			w.write(item, depth+1)
		}
		w.WriteByte(']')
	default:
		w.WriteString(scalarJSON(n.scalar))
	}
}
