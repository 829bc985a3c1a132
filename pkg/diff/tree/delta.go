package tree

// Delta is the difference between two values, down to the fields that differ. Field changes, the
// unified diff and notes are all derived from it, so they never contradict each other.
type Delta struct {
	Op Op
	// Old and New are nil where the value does not exist. Where both do and
	// mean the same, only their spelling may differ; it is New's that is shown.
	Old, New *Node
	// Children of a list or an object that differs inside, in the order in
	// which they are printed.
	Children []Child
	// OldKeys and NewKeys are of a list with keys of which the order changed: the
	// keys of all items as JSON, in order.
	OldKeys, NewKeys []string
}

// Op says what happens to a value.
type Op uint8

// The operations. Inside is of an object or a list that stays and of which
// something changes: its children say what.
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
	// Name of a field; empty of an item.
	Name string
	// Step is the path element of the value; an unchanged field may have none.
	Step string
	// Index in the new list, from 0, of an item that was added to a list with
	// keys, otherwise -1.
	Index int
	// Moved tells of an item that stands elsewhere than it did.
	Moved Movement
}

// Movement says where an item of a list stands.
type Movement uint8

// The movements. An item that moved is two children: it is printed as removed
// where it stood (MovedAway, which is nothing else) and as added where it stands
// (MovedHere, which has what changed inside).
const (
	InPlace Movement = iota
	MovedHere
	MovedAway
)

// Changed reports whether a field differs, or one below it.
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
