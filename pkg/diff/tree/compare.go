package tree

import "github.com/penstock-project/penstock/pkg/diff/schema"

// Compare returns the delta from old to new. A nil node is a value that does not exist; not both
// may be nil.
func (c *Comparer) Compare(old, new *Node) Delta {
	at := Delta{Op: Replaced, Old: old, New: new}
	switch {
	case old == nil:
		at.Op = Added
	case new == nil:
		at.Op = Removed
	case c.stop() || Equal(old, new):
		at.Op = Same
	case old.kind == Object && new.kind == Object:
		c.compareFields(&at)
	case old.kind == List && new.kind == List:
		c.compareItems(&at)
	}
	return at
}

// settle sets the operation of a list or an object from its children.
func (at *Delta) settle() {
	at.Op = Same
	if at.NewKeys != nil {
		at.Op = Inside
	}
	for _, c := range at.Children {
		if c.Op != Same {
			at.Op = Inside
			return
		}
	}
}

func (c *Comparer) compareFields(at *Delta) {
	old, new := at.Old.fields, at.New.fields
	at.Children = make([]Child, 0, max(len(old), len(new)))
	for len(old) > 0 || len(new) > 0 {
		switch {
		case len(new) == 0 || len(old) > 0 && old[0].Name < new[0].Name:
			at.addField(old[0].Name, c.oneSided(at.New, old[0], Delta{Op: Removed, Old: old[0].Value}))
			old = old[1:]
		case len(old) == 0 || new[0].Name < old[0].Name:
			at.addField(new[0].Name, c.oneSided(at.Old, new[0], Delta{Op: Added, New: new[0].Value}))
			new = new[1:]
		default:
			at.addField(new[0].Name, c.Compare(old[0].Value, new[0].Value))
			old, new = old[1:], new[1:]
		}
	}
	at.settle()
}

func (at *Delta) addField(name string, field Delta) {
	child := Child{Delta: field, Name: name, Index: -1}
	if field.Op != Same {
		child.Step = fieldStep(name)
	}
	at.Children = append(at.Children, child)
}

// oneSided returns the delta of a field that only one of two objects has. It is no difference if
// both objects imply the value. Both must imply it, because a default may depend on other fields
// that differ.
func (c *Comparer) oneSided(without *Node, f Field, otherwise Delta) Delta {
	if f.Value.implied && c.impliedBy(without, f.Name, f.Value) {
		otherwise.Op = Same
	}
	return otherwise
}

// compareItems compares two lists: by the keys of the schema or of the items, and otherwise by
// their order.
func (c *Comparer) compareItems(at *Delta) {
	shape := at.New.shape()
	if shape.List == schema.ListUnknown {
		shape = at.Old.shape()
	}
	switch {
	case shape.List == schema.ListSet && isSet(at.Old.items) && isSet(at.New.items):
		c.compareKeyed(at, setLabels(at.Old.items), setLabels(at.New.items))
		at.OldKeys, at.NewKeys = nil, nil
		at.keepInPlace()
	case c.byKeys(at, shape.Keys):
	default:
		c.compareSequence(at)
	}
	at.settle()
}

// keepInPlace reverts moves within sets. Their order has no meaning, so the new order is printed.
func (at *Delta) keepInPlace() {
	kept := at.Children[:0]
	for _, c := range at.Children {
		if c.Moved != MovedAway {
			c.Moved = InPlace
			kept = append(kept, c)
		}
	}
	at.Children = kept
}
