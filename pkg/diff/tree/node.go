package tree

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/penstock-project/penstock/pkg/diff/schema"
)

// Node is a value of a manifest with the facts that its comparison needs: its type, a hash, and
// whether its fields are implied. The methods Field, At, Items, Strings, Str and IsTrue may be
// called on nil.
//
// A node has only a digest of a hidden value. All output is written from nodes, so no output can
// contain hidden values.
type Node struct {
	kind Kind
	// isText is true if a scalar is a string; then its value is in text, otherwise in scalar.
	isText bool
	// implied is true if an API server would set this value itself.
	implied bool
	// hash ignores implied fields and the order of sets.
	hash uint64

	text   string
	scalar any
	amount string  // of a quantity, in its common spelling
	fields []Field // of an object, sorted by name, without nulls
	items  []*Node // of a list
	digest *[sha256.Size]byte

	typ schema.Type
	// raw is the decoded object, for defaults that depend on other fields, because nodes of hidden
	// fields have no value. It is never printed.
	raw map[string]any
}

// Kind is the JSON type of a node.
type Kind uint8

// The kinds of nodes. A Hidden node can only be compared.
const (
	Scalar Kind = iota
	Object
	List
	Hidden
)

// Field is a field of an object.
type Field struct {
	Name  string
	Value *Node
}

// Kind returns the kind of the node.
func (n *Node) Kind() Kind { return n.kind }

// Scalar returns the value of a scalar: nil, bool, string, int64 or float64. For other kinds it
// returns nil.
func (n *Node) Scalar() any {
	if n.isText {
		return n.text
	}
	return n.scalar
}

func (n *Node) setScalar(value any) {
	if n.text, n.isText = value.(string); !n.isText {
		n.scalar = value
	}
}

// Fields returns the fields of an object without nulls, sorted by name; none for other kinds. It
// may be called on nil.
func (n *Node) Fields() []Field {
	if n == nil {
		return nil
	}
	return n.fields
}

// Implied reports whether an API server would set this field itself, so that its absence means the
// same.
func (n *Node) Implied() bool { return n.implied }

// Field returns a field of an object, or nil.
func (n *Node) Field(name string) *Node {
	if n == nil || n.kind != Object {
		return nil
	}
	i, found := slices.BinarySearchFunc(n.fields, name, func(f Field, name string) int { return cmp.Compare(f.Name, name) })
	if !found {
		return nil
	}
	return n.fields[i].Value
}

// At follows a path of field names to a node or nil.
func (n *Node) At(names ...string) *Node {
	for _, name := range names {
		n = n.Field(name)
	}
	return n
}

// Items returns the items of a list; none for other kinds.
func (n *Node) Items() []*Node {
	if n == nil || n.kind != List {
		return nil
	}
	return n.items
}

// Strings returns the items of a list as strings; "" for an item that is no string.
func (n *Node) Strings() []string {
	var all []string
	for _, item := range n.Items() {
		all = append(all, item.Str())
	}
	return all
}

// Str returns the value of a string node, and "" for other nodes.
func (n *Node) Str() string {
	if n == nil || n.kind != Scalar {
		return ""
	}
	return n.text
}

// IsTrue reports whether the value is the boolean true.
func (n *Node) IsTrue() bool {
	return n != nil && n.kind == Scalar && n.scalar == true
}

// IsEmpty reports whether a list or an object has no content.
func (n *Node) IsEmpty() bool {
	return n.kind == Object && len(n.fields) == 0 || n.kind == List && len(n.items) == 0
}

func (n *Node) shape() schema.Shape {
	if n == nil || n.typ == nil {
		return schema.Shape{}
	}
	return n.typ.Shape()
}
