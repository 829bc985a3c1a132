package diff

import (
	"math"
	"slices"

	"github.com/penstock-project/penstock/pkg/diff/schema"
)

type amount string

// identity returns what a scalar is compared by. Integers are exact; a float
// that is one is the same as the integer.
func identity(n *node) any {
	if n.amount != "" {
		return amount(n.amount)
	}
	if f, ok := n.scalar.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	return n.scalar
}

// same tells whether two values mean the same. Hashes only say no: a yes is
// verified.
func same(a, b *node) bool {
	if a.hash != b.hash || a.kind != b.kind {
		return false
	}
	switch a.kind {
	case hiddenNode:
		return a.digest == b.digest
	case objectNode:
		return sameFields(a.fields, b.fields)
	case listNode:
		return sameItems(a, b)
	default:
		return identity(a) == identity(b)
	}
}

func sameFields(a, b []fieldNode) bool {
	for {
		for len(a) > 0 && a[0].implied {
			a = a[1:]
		}
		for len(b) > 0 && b[0].implied {
			b = b[1:]
		}
		if len(a) == 0 || len(b) == 0 {
			return len(a) == len(b)
		}
		if a[0].name != b[0].name || !same(a[0].node, b[0].node) {
			return false
		}
		a, b = a[1:], b[1:]
	}
}

func sameItems(a, b *node) bool {
	left, right := a.items, b.items
	if len(left) != len(right) {
		return false
	}
	if a.shape().List == schema.ListSet {
		left, right = byHash(left), byHash(right)
	}
	return slices.EqualFunc(left, right, same)
}

func byHash(items []*node) []*node {
	return slices.SortedStableFunc(slices.Values(items), func(a, b *node) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return 0
	})
}
