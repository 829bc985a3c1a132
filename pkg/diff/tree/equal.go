package tree

import (
	"math"
	"slices"

	"github.com/penstock-project/penstock/pkg/diff/schema"
)

type amount string

// identity returns the value by which a scalar is compared. Integers are exact. A float without a
// fraction equals the integer.
func identity(n *Node) any {
	if n.amount != "" {
		return amount(n.amount)
	}
	if f, ok := n.scalar.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	return n.Scalar()
}

// Equal reports whether two values of one Comparer mean the same. Different hashes prove a
// difference; equal hashes are verified.
func Equal(a, b *Node) bool {
	if a.hash != b.hash || a.kind != b.kind {
		return false
	}
	switch a.kind {
	case Hidden:
		return *a.digest == *b.digest
	case Object:
		return equalFields(a.fields, b.fields)
	case List:
		return equalItems(a, b)
	default:
		if a.isText && b.isText && a.amount == "" && b.amount == "" {
			return a.text == b.text
		}
		return identity(a) == identity(b)
	}
}

func equalFields(a, b []Field) bool {
	for {
		for len(a) > 0 && a[0].Value.implied {
			a = a[1:]
		}
		for len(b) > 0 && b[0].Value.implied {
			b = b[1:]
		}
		if len(a) == 0 || len(b) == 0 {
			return len(a) == len(b)
		}
		if a[0].Name != b[0].Name || !Equal(a[0].Value, b[0].Value) {
			return false
		}
		a, b = a[1:], b[1:]
	}
}

func equalItems(a, b *Node) bool {
	left, right := a.items, b.items
	if len(left) != len(right) {
		return false
	}
	if a.shape().List == schema.ListSet {
		left, right = byHash(left), byHash(right)
	}
	return slices.EqualFunc(left, right, Equal)
}

func byHash(items []*Node) []*Node {
	return slices.SortedStableFunc(slices.Values(items), func(a, b *Node) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return 0
	})
}
