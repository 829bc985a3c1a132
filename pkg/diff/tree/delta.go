package tree

// Delta is the difference between two values, down to the fields that differ. Field changes, the
// unified diff and notes are all derived from it, so they never contradict each other.
type Delta struct {
	Op Op
	// Old and New are nil if the value does not exist. If Op is Same and both exist, only their
	// spelling may differ, and New is printed.
	Old, New *Node
	// Children of a list or an object that differs inside, in the order of printing.
	Children []Child
	// OldKeys and NewKeys are set for a keyed list whose order changed: the keys of all items as
	// JSON, in order.
	OldKeys, NewKeys []string
}

// Op is the kind of change of a value.
type Op uint8

// The operations. Inside is for an object or a list that is kept while some of its children change.
const (
	Same Op = iota
	Added
	Removed
	Replaced
	Inside
)

// Child is one field of an object or one item of a list.
type Child struct {
	Delta
	// Name of a field; empty for an item.
	Name string
	// Step is the path element of the value; an unchanged field may have none.
	Step string
	// Index in the new list, from 0, of an item that was added to a keyed list; otherwise -1.
	Index int
	// Moved is the move of an item whose position in the list changed.
	Moved Movement
}

// Movement is the kind of move of a list item.
type Movement uint8

// The movements. A moved item has two children: MovedAway at the old position, printed as removed,
// and MovedHere at the new one, printed as added. Only MovedHere has the changes inside the item.
const (
	InPlace Movement = iota
	MovedHere
	MovedAway
)

// Changed reports whether a field, or a field below it, differs.
func (at Delta) Changed(names ...string) bool {
	for _, name := range names {
		if at.Op != Inside {
			return at.Op != Same
		}
		found := false
		for _, c := range at.Children {
			if c.Name == name {
				at, found = c.Delta, true
				break
			}
		}
		if !found {
			return false
		}
	}
	return at.Op != Same
}
