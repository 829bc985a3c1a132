package diff

import (
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// delta is how one value becomes another, down to where they differ. Field
// changes, the unified diff and notes are all read from it, so they never
// contradict each other.
type delta struct {
	op deltaOp
	// old and new are nil where the value does not exist. Where both do and
	// mean the same, only their spelling may differ; it is new's that is shown.
	old, new *node
	// children of a list or an object that differs inside, in the order in
	// which they are printed.
	children []child
	// oldKeys and newKeys are of a list with keys of which the order changed.
	oldKeys, newKeys []string
}

type deltaOp uint8

const (
	deltaSame deltaOp = iota
	deltaAdded
	deltaRemoved
	deltaReplaced
	deltaInside
)

// child is one field of an object or one item of a list.
type child struct {
	delta
	// name of a field; empty of an item.
	name string
	// step is how a path names it.
	step string
	// index in the new list of an item that was added to a list with keys,
	// otherwise -1.
	index int
	// moved tells of an item that stands elsewhere than it did.
	moved movement
}

type movement uint8

const (
	stays movement = iota
	// movedHere is printed as added; what changed inside are field changes.
	movedHere
	// movedAway is printed as removed, and is nothing else.
	movedAway
)

// differ compares nodes of one builder.
type differ struct {
	*builder
}

func (d differ) compare(old, new *node) delta {
	at := delta{op: deltaReplaced, old: old, new: new}
	switch {
	case old == nil:
		at.op = deltaAdded
	case new == nil:
		at.op = deltaRemoved
	case d.stop() || same(old, new):
		at.op = deltaSame
	case old.kind == objectNode && new.kind == objectNode:
		d.fields(&at)
	case old.kind == listNode && new.kind == listNode:
		d.items(&at)
	}
	return at
}

// settle sets the operation of a list or an object from those of its children.
func (at *delta) settle() {
	at.op = deltaSame
	if at.newKeys != nil {
		at.op = deltaInside
	}
	for _, c := range at.children {
		if c.op != deltaSame {
			at.op = deltaInside
			return
		}
	}
}

// fields compares two objects field by field, in the order of names.
func (d differ) fields(at *delta) {
	old, new := at.old.fields, at.new.fields
	for len(old) > 0 || len(new) > 0 {
		switch {
		case len(new) == 0 || len(old) > 0 && old[0].name < new[0].name:
			at.addField(old[0].name, d.oneSided(at.new, old[0], delta{op: deltaRemoved, old: old[0].node}))
			old = old[1:]
		case len(old) == 0 || new[0].name < old[0].name:
			at.addField(new[0].name, d.oneSided(at.old, new[0], delta{op: deltaAdded, new: new[0].node}))
			new = new[1:]
		default:
			at.addField(new[0].name, d.compare(old[0].node, new[0].node))
			old, new = old[1:], new[1:]
		}
	}
	at.settle()
}

func (at *delta) addField(name string, field delta) {
	at.children = append(at.children, child{delta: field, name: name, step: fieldStep(name), index: -1})
}

// oneSided is of a field that only one of two objects has. That is no
// difference when both imply the same value. Both are asked, as a default may
// depend on fields that differ: what one implies must not get lost with them.
func (d differ) oneSided(without *node, f fieldNode, otherwise delta) delta {
	if f.implied && d.impliedBy(without, f.name, f.node) {
		otherwise.op = deltaSame
	}
	return otherwise
}

// items compares two lists: by the keys that the schema or the items themselves
// give, else by their order.
func (d differ) items(at *delta) {
	shape := at.new.shape()
	if shape.List == schema.ListUnknown {
		shape = at.old.shape()
	}
	switch {
	case shape.List == schema.ListSet && isSet(at.old.items) && isSet(at.new.items):
		d.keyed(at, setLabels(at.old.items), setLabels(at.new.items))
		at.oldKeys, at.newKeys = nil, nil
		at.keepInPlace()
	case d.byKeys(at, shape.Keys):
	default:
		d.sequence(at)
	}
	at.settle()
}

// keepInPlace is for sets: the order of their items says nothing, so that of
// new is printed.
func (at *delta) keepInPlace() {
	kept := at.children[:0]
	for _, c := range at.children {
		if c.moved != movedAway {
			c.moved = stays
			kept = append(kept, c)
		}
	}
	at.children = kept
}

// byKeys compares by keys, if there are any that tell all items apart on both
// sides.
func (d differ) byKeys(at *delta, declared []string) bool {
	candidates := [][]string{
		declared,
		{"name"}, {"key"}, {"id"}, {"mountPath"},
		{"containerPort", "protocol"}, {"port", "protocol"},
		{"name", "namespace", "kind"}, {"path"}, {"host"},
	}
	for _, keys := range candidates {
		if len(keys) == 0 {
			continue
		}
		old, ok := d.labels(at.old.items, keys)
		if !ok {
			continue
		}
		if new, ok := d.labels(at.new.items, keys); ok {
			d.keyed(at, old, new)
			return true
		}
	}
	return false
}

// label names an item of a list with keys.
type label struct {
	// step is what a path says: [name="x"]; it is also what tells items apart.
	step string
	// value is JSON: of the key, or an object of several.
	value string
}

// labels returns those of all items, or false when the keys do not tell them
// apart. The first key must be there; others may be missing.
func (d differ) labels(items []*node, keys []string) ([]label, bool) {
	labels := make([]label, 0, len(items))
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		l, ok := d.label(item, keys)
		if !ok || seen[l.step] {
			return nil, false
		}
		seen[l.step] = true
		labels = append(labels, l)
	}
	return labels, true
}

func (d differ) label(item *node, keys []string) (label, bool) {
	if item.kind != objectNode {
		return label{}, false
	}
	var step, value strings.Builder
	separator := ""
	for i, name := range keys {
		key := item.field(name)
		if key == nil && item.typ != nil {
			if fallback, ok := item.typ.Default(name, item.raw); ok {
				key = d.build(fallback, item.typ.Field(name), place{})
			}
		}
		switch {
		case key == nil && i > 0:
			continue
		case key == nil || key.kind != scalarNode || key.scalar == nil:
			return label{}, false
		}
		spelled := scalarJSON(key.scalar)
		step.WriteString(separator + keyName(name) + "=" + spelled)
		value.WriteString(separator + quote(name) + ":" + spelled)
		separator = ","
		if len(keys) == 1 {
			return label{step: "[" + step.String() + "]", value: spelled}, true
		}
	}
	return label{step: "[" + step.String() + "]", value: "{" + value.String() + "}"}, true
}

func keyName(name string) string {
	if manifest.IsIdentifier(name) {
		return name
	}
	return quote(name)
}

// isSet tells whether a list consists of scalars that are all different.
func isSet(items []*node) bool {
	seen := make(map[any]bool, len(items))
	for _, item := range items {
		if item.kind != scalarNode || seen[identity(item)] {
			return false
		}
		seen[identity(item)] = true
	}
	return true
}

func setLabels(items []*node) []label {
	labels := make([]label, 0, len(items))
	for _, item := range items {
		spelled := scalarJSON(identity(item))
		labels = append(labels, label{step: "[=" + spelled + "]", value: spelled})
	}
	return labels
}
