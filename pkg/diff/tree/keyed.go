package tree

import (
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// byKeys compares lists by keys. It returns false if no keys identify all items on both sides.
func (c *Comparer) byKeys(at *Delta, declared []string) bool {
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
		old, ok := c.labels(at.Old.items, keys)
		if !ok {
			continue
		}
		if new, ok := c.labels(at.New.items, keys); ok {
			c.compareKeyed(at, old, new)
			return true
		}
	}
	return false
}

// compareKeyed compares lists whose items have unique labels. Items that keep their relative
// position are printed in place; moved items are printed as removed and added.
func (c *Comparer) compareKeyed(at *Delta, oldLabels, newLabels []label) {
	lists := matchLabels(oldLabels, newLabels)
	if len(lists.inPlace) < len(lists.common) {
		at.OldKeys, at.NewKeys = values(oldLabels), values(newLabels)
	}
	next := 0
	removeUpTo := func(end int) {
		for ; next < end; next++ {
			gone := Child{Delta: Delta{Op: Removed, Old: at.Old.items[next]}, Step: oldLabels[next].step, Index: -1}
			if lists.common[next] {
				gone.Moved = MovedAway
			}
			at.Children = append(at.Children, gone)
		}
	}
	for j, end := range lists.nextInPlace(newLabels, len(oldLabels)) {
		// Removed items are printed before their replacements.
		removeUpTo(end)
		step := newLabels[j].step
		i, existed := lists.oldIndex[step]
		if !existed {
			at.Children = append(at.Children, Child{Delta: Delta{Op: Added, New: at.New.items[j]}, Step: step, Index: j})
			continue
		}
		here := Child{Delta: c.Compare(at.Old.items[i], at.New.items[j]), Step: step, Index: -1}
		if lists.inPlace[i] {
			next = i + 1
		} else {
			here.Moved = MovedHere
		}
		at.Children = append(at.Children, here)
	}
	removeUpTo(len(oldLabels))
}

// matched holds the items of two lists that have the same label.
type matched struct {
	// oldIndex maps the step of an item to its index in the old list.
	oldIndex map[string]int
	// common and inPlace are indices in the old list: the items that both lists have, and the items
	// that keep their relative position.
	common, inPlace map[int]bool
}

func matchLabels(old, new []label) matched {
	m := matched{oldIndex: make(map[string]int, len(old))}
	for i, l := range old {
		m.oldIndex[l.step] = i
	}
	var inNewOrder []int
	for _, l := range new {
		if i, ok := m.oldIndex[l.step]; ok {
			inNewOrder = append(inNewOrder, i)
		}
	}
	m.common = make(map[int]bool, len(inNewOrder))
	for _, i := range inNewOrder {
		m.common[i] = true
	}
	m.inPlace = make(map[int]bool, len(inNewOrder))
	for _, i := range ascending(inNewOrder) {
		m.inPlace[inNewOrder[i]] = true
	}
	return m
}

// nextInPlace returns for each new item the old index of the next item (or itself) that stays in
// place, or end.
func (m matched) nextInPlace(new []label, end int) []int {
	ends := make([]int, len(new))
	for j := len(new) - 1; j >= 0; j-- {
		if i, ok := m.oldIndex[new[j].step]; ok && m.inPlace[i] {
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

// label identifies an item of a keyed list.
type label struct {
	// step is the path step: [name="x"].
	step string
	// value is the key as JSON, or an object of several keys.
	value string
}

// labels returns the labels of all items, or false if the keys do not identify them. Each item must
// have the first key; the other keys may be missing.
func (c *Comparer) labels(items []*Node, keys []string) ([]label, bool) {
	labels := make([]label, 0, len(items))
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		l, ok := c.label(item, keys)
		if !ok || seen[l.step] {
			return nil, false
		}
		seen[l.step] = true
		labels = append(labels, l)
	}
	return labels, true
}

func (c *Comparer) label(item *Node, keys []string) (label, bool) {
	if item.kind != Object {
		return label{}, false
	}
	var step, value strings.Builder
	separator := ""
	for i, name := range keys {
		key := item.Field(name)
		if key == nil && item.typ != nil {
			if fallback, ok := item.typ.Default(name, (*siblings)(item)); ok {
				key = c.build(fallback, item.typ.Field(name), place{})
			}
		}
		switch {
		case key == nil && i > 0:
			continue
		case key == nil || key.kind != Scalar || key.Scalar() == nil:
			return label{}, false
		}
		spelled := printable.Scalar(key.Scalar())
		step.WriteString(separator + keyName(name) + "=" + spelled)
		value.WriteString(separator + printable.Quote(name) + ":" + spelled)
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
	return printable.Quote(name)
}

// isSet reports whether a list consists of distinct scalars.
func isSet(items []*Node) bool {
	seen := make(map[any]bool, len(items))
	for _, item := range items {
		if item.kind != Scalar || seen[identity(item)] {
			return false
		}
		seen[identity(item)] = true
	}
	return true
}

func setLabels(items []*Node) []label {
	labels := make([]label, 0, len(items))
	for _, item := range items {
		spelled := printable.Scalar(identity(item))
		labels = append(labels, label{step: "[=" + spelled + "]", value: spelled})
	}
	return labels
}
