package diff

import (
	"math"
	"strings"
)

// keyed compares lists whose items have labels that are unique in each. Items
// that kept their place relative to each other are printed in place, the others
// as removed and added.
func (d differ) keyed(at *delta, oldLabels, newLabels []label) {
	oldIndex := make(map[string]int, len(oldLabels))
	for i, l := range oldLabels {
		oldIndex[l.step] = i
	}
	// common are the old indices of the items that both have, in new order.
	var common []int
	for _, l := range newLabels {
		if i, ok := oldIndex[l.step]; ok {
			common = append(common, i)
		}
	}
	inPlace := make(map[int]bool, len(common))
	for _, i := range ascending(common) {
		inPlace[common[i]] = true
	}
	isCommon := make(map[int]bool, len(common))
	for _, i := range common {
		isCommon[i] = true
	}
	if len(inPlace) < len(common) {
		at.oldKeys, at.newKeys = values(oldLabels), values(newLabels)
	}

	next := 0
	flush := func(end int) {
		for ; next < end; next++ {
			gone := child{delta: delta{op: deltaRemoved, old: at.old.items[next]}, step: oldLabels[next].step, index: -1}
			if isCommon[next] {
				gone.moved = movedAway
			}
			at.children = append(at.children, gone)
		}
	}
	for j, end := range nextInPlace(oldIndex, newLabels, inPlace, len(oldLabels)) {
		// What is gone is printed before what took its place.
		flush(end)
		l := newLabels[j]
		i, ok := oldIndex[l.step]
		if !ok {
			at.children = append(at.children, child{delta: delta{op: deltaAdded, new: at.new.items[j]}, step: l.step, index: j})
			continue
		}
		here := child{delta: d.compare(at.old.items[i], at.new.items[j]), step: l.step, index: -1}
		if inPlace[i] {
			next = i + 1
		} else {
			here.moved = movedHere
		}
		at.children = append(at.children, here)
	}
	flush(len(oldLabels))
}

// nextInPlace returns for each new item the old index of the first item, from it
// on, that stays in place.
func nextInPlace(oldIndex map[string]int, newLabels []label, inPlace map[int]bool, end int) []int {
	ends := make([]int, len(newLabels))
	for j := len(newLabels) - 1; j >= 0; j-- {
		if i, ok := oldIndex[newLabels[j].step]; ok && inPlace[i] {
			end = i
		}
		ends[j] = end
	}
	return ends
}

func values(labels []label) []string {
	out := make([]string, 0, len(labels))
	for _, l := range labels {
		out = append(out, l.value)
	}
	return out
}

// sequence compares lists by the order of their items: what is equal is aligned,
// and of what is left between, items that resemble each other are compared.
func (d differ) sequence(at *delta) {
	old, new := at.old.items, at.new.items
	var known interner
	pairs := align(known.ids(old), known.ids(new), d.stop)
	pairs = append(pairs, pair{len(old), len(new)})
	i, j := 0, 0
	for _, equal := range pairs {
		// similar counts from the start of the gap.
		oldStart, newStart := i, j
		for _, p := range similar(old[i:equal.old], new[j:equal.new], d.stop) {
			at.removeItems(i, oldStart+p.old)
			at.addItems(j, newStart+p.new)
			i, j = oldStart+p.old, newStart+p.new
			at.addItem(d.compare(old[i], new[j]), j)
			i, j = i+1, j+1
		}
		at.removeItems(i, equal.old)
		at.addItems(j, equal.new)
		if i, j = equal.old, equal.new; i < len(old) {
			at.addItem(delta{old: old[i], new: new[j]}, j)
			i, j = i+1, j+1
		}
	}
}

func (at *delta) removeItems(from, to int) {
	for i := from; i < to; i++ {
		at.addItem(delta{op: deltaRemoved, old: at.old.items[i]}, i)
	}
}

func (at *delta) addItems(from, to int) {
	for j := from; j < to; j++ {
		at.addItem(delta{op: deltaAdded, new: at.new.items[j]}, j)
	}
}

func (at *delta) addItem(item delta, index int) {
	at.children = append(at.children, child{delta: item, step: indexStep(index), index: -1})
}

// interner gives equal values equal numbers.
type interner struct {
	known map[uint64][]*node
	id    map[*node]int
}

func (k *interner) ids(items []*node) []int {
	if k.known == nil {
		k.known, k.id = map[uint64][]*node{}, map[*node]int{}
	}
	ids := make([]int, 0, len(items))
	for _, item := range items {
		ids = append(ids, k.idOf(item))
	}
	return ids
}

func (k *interner) idOf(item *node) int {
	for _, other := range k.known[item.hash] {
		if same(other, item) {
			return k.id[other]
		}
	}
	k.known[item.hash] = append(k.known[item.hash], item)
	k.id[item] = len(k.id)
	return k.id[item]
}

const (
	// similarEffort bounds the pairs of items that are looked at for
	// resemblance.
	similarEffort = 2500
	// similarEnough is where two items are better read as one that changed
	// than as one that went and another that came.
	similarEnough = 0.4
)

// similar pairs items that resemble each other, in order, so that their
// resemblance is greatest in sum.
func similar(old, new []*node, stop func() bool) []pair {
	rows, columns := len(old), len(new)
	if rows == 0 || columns == 0 || rows*columns > similarEffort || stop() {
		return nil
	}
	// best[i][j] is of old[i:] and new[j:].
	best := make([][]float64, rows+1)
	best[rows] = make([]float64, columns+1)
	alike := make([][]float64, rows)
	for i := rows - 1; i >= 0; i-- {
		best[i] = make([]float64, columns+1)
		alike[i] = make([]float64, columns)
		for j := columns - 1; j >= 0; j-- {
			alike[i][j] = resemblance(old[i], new[j])
			if rows == 1 && columns == 1 {
				alike[i][j] = math.Max(alike[i][j], lonely(old[i], new[j]))
			}
			best[i][j] = math.Max(best[i+1][j], best[i][j+1])
			if alike[i][j] >= similarEnough {
				best[i][j] = math.Max(best[i][j], alike[i][j]+best[i+1][j+1])
			}
		}
	}
	var pairs []pair
	for i, j := 0, 0; i < rows && j < columns; {
		switch {
		case alike[i][j] >= similarEnough && best[i][j] == alike[i][j]+best[i+1][j+1]:
			pairs = append(pairs, pair{i, j})
			i, j = i+1, j+1
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// lonely is how much two items resemble each other that have nothing beside
// them to be confused with.
func lonely(a, b *node) float64 {
	if a.kind == b.kind && a.kind != objectNode {
		return similarEnough
	}
	return 0
}

// resemblance of two values, from 0 to 1.
func resemblance(a, b *node) float64 {
	switch {
	case same(a, b):
		return 1
	case a.kind == objectNode && b.kind == objectNode:
		return objectResemblance(a, b)
	case a.kind == scalarNode && b.kind == scalarNode:
		return stringResemblance(a.str(), b.str())
	}
	return 0
}

// objectResemblance is the share of fields that are equal; those that only
// exist on both sides count a quarter.
func objectResemblance(a, b *node) float64 {
	if len(a.fields) == 0 || len(b.fields) == 0 {
		return 0
	}
	equal := 0.0
	for _, f := range a.fields {
		other := b.field(f.name)
		switch {
		case other == nil:
		case f.hash == other.hash:
			equal++
		default:
			equal += 0.25
		}
	}
	return equal / float64(max(len(a.fields), len(b.fields)))
}

// stringResemblance finds the flag --x of which the value changed, and the image
// of which the tag did.
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
