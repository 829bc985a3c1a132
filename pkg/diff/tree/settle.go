package tree

import (
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/penstock-project/penstock/pkg/diff/schema"
)

// The functions below set what a node that has its value says of it: which of its fields
// are implied, its amount, and its hash.

func (c *Comparer) settleObject(n *Node) {
	hash := uint64(Object)
	for _, f := range n.fields {
		if f.Value.implied = c.impliedBy(n, f.Name, f.Value); !f.Value.implied {
			hash = c.mix(c.mix(hash, maphash.String(c.seed, f.Name)), f.Value.hash)
		}
	}
	n.hash = c.mix(hash, 'o')
}

// impliedBy reports whether parent without the field means the same as with it, having this value.
func (c *Comparer) impliedBy(parent *Node, name string, value *Node) bool {
	if value.kind == Hidden {
		return false
	}
	if value.IsEmpty() && value.shape().EmptyIsAbsent {
		return true
	}
	if parent.typ == nil {
		return false
	}
	fallback, ok := parent.typ.Default(name, (*siblings)(parent))
	return ok && c.equalsDefault(value, fallback)
}

// equalsDefault reports whether a value means the same as a default.
func (c *Comparer) equalsDefault(value *Node, fallback any) bool {
	switch fallback.(type) {
	case map[string]any, []any:
		return Equal(value, c.build(fallback, value.typ, place{}))
	}
	if value.kind != Scalar {
		return false
	}
	// Most defaults are scalars, and each field that has one is asked about.
	c.fallback = Node{kind: Scalar, typ: value.typ}
	c.fallback.setScalar(fallback)
	c.settleScalar(&c.fallback, place{})
	return Equal(value, &c.fallback)
}

// siblings are the fields of an object beside one that has a default.
type siblings Node

// Value implements schema.Parent. It returns real values, for defaults that depend on them.
func (s *siblings) Value(field string) any {
	if s.raw != nil {
		return s.raw[field]
	}
	return (*Node)(s).Field(field).decoded()
}

// decoded is a value as a decoder makes it, without fields that are null.
func (n *Node) decoded() any {
	switch {
	case n == nil:
		return nil
	case n.kind == Object:
		object := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			object[f.Name] = f.Value.decoded()
		}
		return object
	case n.kind == List:
		list := make([]any, 0, len(n.items))
		for _, item := range n.items {
			list = append(list, item.decoded())
		}
		return list
	default:
		return n.Scalar()
	}
}

func (c *Comparer) settleList(n *Node) {
	unordered := n.shape().List == schema.ListSet
	hash, sum := uint64(List), uint64(0)
	for _, item := range n.items {
		if unordered {
			sum += item.hash
		} else {
			hash = c.mix(hash, item.hash)
		}
	}
	n.hash = c.mix(hash, sum)
}

func (c *Comparer) settleScalar(n *Node, p place) {
	if n.shape().Quantity || n.typ == nil && p.looksLikeQuantity() {
		n.amount, _ = quantity(n.Scalar())
	}
	switch v := identity(n).(type) {
	case string:
		n.hash = c.mix(maphash.String(c.seed, v), 's')
	case amount:
		n.hash = c.mix(maphash.String(c.seed, string(v)), 'q')
	case int64:
		n.hash = c.mix(uint64(v), 'i')
	case float64:
		n.hash = c.mix(math.Float64bits(v), 'f')
	case bool:
		n.hash = c.mix(0, 'f')
		if v {
			n.hash = c.mix(0, 't')
		}
	}
}

// mix makes one hash of two. Without the salt nobody can make them collide.
func (c *Comparer) mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^c.salt[0], b^c.salt[1])
	return high ^ low
}
