package diff

import (
	"encoding/json"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/render"
	"github.com/penstock-project/penstock/pkg/diff/tree"
)

// fieldList converts a delta to field changes, within limits.
type fieldList struct {
	changes   []FieldChange
	truncated Truncation
	// left and leftBytes are the remaining limits of the whole report.
	left, leftBytes *int
	limits          Limits
}

func (l *fieldList) add(at *tree.Path, d tree.Delta, index int) {
	switch d.Op {
	case tree.Same:
	case tree.Inside:
		l.inside(at, d)
	default:
		if !l.room() {
			return
		}
		change := FieldChange{Path: at.String(), Op: operation(d.Op)}
		if index >= 0 {
			change.Index = &index
		}
		l.setValues(&change, d)
		l.changes = append(l.changes, change)
	}
}

func (l *fieldList) inside(at *tree.Path, d tree.Delta) {
	if d.NewKeys != nil && l.room() {
		change := FieldChange{Path: at.String(), Op: Reorder}
		l.show(&change, render.Value{JSON: array(d.OldKeys)}, render.Value{JSON: array(d.NewKeys)})
		l.changes = append(l.changes, change)
	}
	for _, c := range d.Children {
		if c.Moved != tree.MovedAway && c.Op != tree.Same {
			l.add(at.Append(c.Step), c.Delta, c.Index)
		}
	}
}

// room reports whether one more change may be shown, and counts it.
func (l *fieldList) room() bool {
	if len(l.changes) >= l.limits.Fields || *l.left <= 0 {
		l.truncated.Fields++
		return false
	}
	*l.left--
	return true
}

func operation(op tree.Op) Op {
	switch op {
	case tree.Added:
		return Add
	case tree.Removed:
		return Remove
	default:
		return Replace
	}
}

func (l *fieldList) setValues(change *FieldChange, d tree.Delta) {
	l.show(change, render.JSON(d.Old), render.JSON(d.New))
}

// show sets the values of a change, unless they are too large or hidden.
func (l *fieldList) show(change *FieldChange, old, new render.Value) {
	change.Redacted = old.Redacted || new.Redacted
	for _, value := range []struct {
		render.Value
		target *json.RawMessage
	}{{old, &change.Old}, {new, &change.New}} {
		size := len(value.JSON)
		switch {
		case size == 0 || value.Hidden:
		case size > l.limits.ValueBytes || size > *l.leftBytes || value.TooDeep:
			change.Truncated += size
		default:
			*value.target = json.RawMessage(value.JSON)
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
