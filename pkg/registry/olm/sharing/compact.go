package sharing

import (
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// compact copies entries into few pieces of memory: the entries, their identities and
// their digests. Twenty thousand revisions are a million strings that the garbage collector
// would look at one by one. Text that an entry has from the one before it is
// there once; objects of one kind mostly stand together. Text that is equal to that of
// the same object in another list is the text of that list.
//
// Digests are apart from identities because they go sooner: a piece is in memory as long
// as a part of it is in use, and names stay from revision to revision.
func compact(objects, other []olm.RevisionObject) []olm.RevisionObject {
	fresh := slices.Clip(slices.Clone(objects))
	others := finder{list: other}
	var identities, digests writer
	for _, write := range []bool{false, true} {
		others.next = 0
		last := &olm.RevisionObject{}
		for i := range fresh {
			same := others.find(&fresh[i])
			before := textOf(last)
			for t, s := range textOf(&fresh[i]) {
				piece := &identities
				if t == digestText {
					piece = &digests
				}
				switch {
				case same != nil && *textOf(same)[t] == *s:
					*s = *textOf(same)[t]
				case *s == *before[t]:
					*s = *before[t]
				default:
					piece.add(s, write)
				}
			}
			last = &fresh[i]
		}
		if !write {
			identities.grow()
			digests.grow()
		}
	}
	return fresh
}

// writer moves strings into one piece of memory, when it has been shown all of them.
type writer struct {
	size int
	text strings.Builder
}

// add counts a string, or moves it.
func (w *writer) add(s *string, write bool) {
	if !write {
		w.size += len(*s)
		return
	}
	start := w.text.Len()
	_, _ = w.text.WriteString(*s)
	*s = w.text.String()[start:]
}

// grow makes the memory. It must not grow later: what was taken from it would keep the
// old memory.
func (w *writer) grow() { w.text.Grow(w.size) }

// finder finds the entry of an object in a list that has mostly the same objects in the
// same order.
type finder struct {
	list []olm.RevisionObject
	next int
}

// finderReach is how many entries it looks at for one: lists have up to 4,000.
const finderReach = 16

// find returns the entry of the same object, nil when it is not near the one found last.
func (f *finder) find(object *olm.RevisionObject) *olm.RevisionObject {
	for i := range min(finderReach, len(f.list)) {
		at := (f.next + i) % len(f.list)
		if found := &f.list[at]; found.Name == object.Name && found.Kind == object.Kind && found.Namespace == object.Namespace {
			f.next = at + 1
			return found
		}
	}
	return nil
}

// digestText is the place of the digest among the strings of an entry.
const digestText = 4

// textOf are the strings of an entry.
func textOf(object *olm.RevisionObject) [6]*string {
	return [6]*string{&object.APIVersion, &object.Kind, &object.Namespace, &object.Name, &object.Digest, (*string)(&object.CollisionProtection)}
}
