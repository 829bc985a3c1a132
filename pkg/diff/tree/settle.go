package tree

import (
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/penstock-project/penstock/pkg/diff/schema"
)

// The functions below derive facts from the value of a node: its implied fields, its amount, and
// its hash.

func (c *Comparer) settleObject(n *Node) {
	hash := uint64(Object)
	for _, f := range n.fields {
		if f.Value.implied = c.impliedBy(n, f.Name, f.Value); !f.Value.implied {
			hash = c.mix(c.mix(hash, maphash.String(c.seed, f.Name)), f.Value.hash)
		}
	}
	n.hash = c.mix(hash, 'o')
}

// impliedBy reports whether parent means the same without the field as with this value.
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

func (c *Comparer) equalsDefault(value *Node, fallback any) bool {
	switch fallback.(type) {
	case map[string]any, []any:
		return Equal(value, c.build(fallback, value.typ, place{}))
	}
	if value.kind != Scalar {
		return false
	}
	// Most defaults are scalars, so a shared node avoids an allocation for each field.
	c.fallback = Node{kind: Scalar, typ: value.typ}
	c.fallback.setScalar(fallback)
	c.settleScalar(&c.fallback, place{})
	return Equal(value, &c.fallback)
}

// siblings gives a default access to the other fields of its object.
type siblings Node

// Value implements schema.Parent. It returns true values, also of hidden fields.
func (s *siblings) Value(field string) any {
	if s.raw != nil {
		return s.raw[field]
	}
	return (*Node)(s).Field(field).decoded()
}

// decoded returns the value as a decoder would, without null fields.
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

// mix combines two hashes. The salt prevents attackers from constructing collisions.
func (c *Comparer) mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^c.salt[0], b^c.salt[1])
	return high ^ low
}
