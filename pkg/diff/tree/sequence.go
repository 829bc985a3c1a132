package tree

import (
	"math"
	"strings"
)

// compareSequence compares lists by the order of their items. It aligns equal items, and compares
// similar items in the gaps between them.
func (c *Comparer) compareSequence(at *Delta) {
	old, new := at.Old.items, at.New.items
	var known interner
	pairs := align(known.ids(old), known.ids(new), c.stop)
	pairs = append(pairs, Pair{len(old), len(new)})
	i, j := 0, 0
	for _, equal := range pairs {
		// similar counts from the start of the gap.
		oldStart, newStart := i, j
		for _, p := range similar(old[i:equal.Old], new[j:equal.New], c.stop) {
			at.removeItems(i, oldStart+p.Old)
			at.addItems(j, newStart+p.New)
			i, j = oldStart+p.Old, newStart+p.New
			at.addItem(c.Compare(old[i], new[j]), j)
			i, j = i+1, j+1
		}
		at.removeItems(i, equal.Old)
		at.addItems(j, equal.New)
		if i, j = equal.Old, equal.New; i < len(old) {
			at.addItem(Delta{Old: old[i], New: new[j]}, j)
			i, j = i+1, j+1
		}
	}
}

func (at *Delta) removeItems(from, to int) {
	for i := from; i < to; i++ {
		at.addItem(Delta{Op: Removed, Old: at.Old.items[i]}, i)
	}
}

func (at *Delta) addItems(from, to int) {
	for j := from; j < to; j++ {
		at.addItem(Delta{Op: Added, New: at.New.items[j]}, j)
	}
}

func (at *Delta) addItem(item Delta, index int) {
	at.Children = append(at.Children, Child{Delta: item, Step: indexStep(index), Index: -1})
}

// interner assigns equal numbers to equal values.
type interner struct {
	known map[uint64][]*Node
	id    map[*Node]int
}

func (k *interner) ids(items []*Node) []int {
	if k.known == nil {
		k.known, k.id = map[uint64][]*Node{}, map[*Node]int{}
	}
	ids := make([]int, 0, len(items))
	for _, item := range items {
		ids = append(ids, k.idOf(item))
	}
	return ids
}

func (k *interner) idOf(item *Node) int {
	for _, other := range k.known[item.hash] {
		if Equal(other, item) {
			return k.id[other]
		}
	}
	k.known[item.hash] = append(k.known[item.hash], item)
	k.id[item] = len(k.id)
	return k.id[item]
}

const (
	// similarEffort is the largest number of pairs of items whose similarity is computed.
	similarEffort = 2500
	// similarEnough is the similarity from which two items count as one changed item, and not as a
	// removed and an added item.
	similarEnough = 0.4
)

// similar pairs similar items in order, so that the sum of their similarities is maximal.
func similar(old, new []*Node, stop func() bool) []Pair {
	rows, columns := len(old), len(new)
	if rows == 0 || columns == 0 || rows*columns > similarEffort || stop() {
		return nil
	}
	// best[i][j] is the best sum for old[i:] and new[j:].
	best := make([][]float64, rows+1)
	best[rows] = make([]float64, columns+1)
	alike := make([][]float64, rows)
	for i := rows - 1; i >= 0; i-- {
		best[i] = make([]float64, columns+1)
		alike[i] = make([]float64, columns)
		for j := columns - 1; j >= 0; j-- {
			alike[i][j] = resemblance(old[i], new[j])
			if rows == 1 && columns == 1 {
				alike[i][j] = math.Max(alike[i][j], onlyPair(old[i], new[j]))
			}
			best[i][j] = math.Max(best[i+1][j], best[i][j+1])
			if alike[i][j] >= similarEnough {
				best[i][j] = math.Max(best[i][j], alike[i][j]+best[i+1][j+1])
			}
		}
	}
	var pairs []Pair
	for i, j := 0, 0; i < rows && j < columns; {
		switch {
		case alike[i][j] >= similarEnough && best[i][j] == alike[i][j]+best[i+1][j+1]:
			pairs = append(pairs, Pair{i, j})
			i, j = i+1, j+1
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// onlyPair returns the similarity of two items that are alone in their gap, and so can only be
// compared with each other.
func onlyPair(a, b *Node) float64 {
	if a.kind == b.kind && a.kind != Object {
		return similarEnough
	}
	return 0
}

func resemblance(a, b *Node) float64 {
	switch {
	case Equal(a, b):
		return 1
	case a.kind == Object && b.kind == Object:
		return objectResemblance(a, b)
	case a.kind == Scalar && b.kind == Scalar:
		return stringResemblance(a.Str(), b.Str())
	}
	return 0
}

// objectResemblance returns the share of equal fields; a field that exists on both sides with
// different values counts a quarter.
func objectResemblance(a, b *Node) float64 {
	if len(a.fields) == 0 || len(b.fields) == 0 {
		return 0
	}
	equal := 0.0
	for _, f := range a.fields {
		other := b.Field(f.Name)
		switch {
		case other == nil:
		case f.Value.hash == other.hash:
			equal++
		default:
			equal += 0.25
		}
	}
	return equal / float64(max(len(a.fields), len(b.fields)))
}

// stringResemblance recognises a flag --x with another value, and an image with another tag.
func stringResemblance(a, b string) float64 {
	for _, separator := range []string{"=", ":", "@"} {
		i, j := strings.LastIndex(a, separator), strings.LastIndex(b, separator)
		if separator == "=" {
			i, j = strings.Index(a, separator), strings.Index(b, separator)
		}
		if i > 0 && i == j && a[:i] == b[:j] {
			return 0.9
		}
	}
	return 0
}
