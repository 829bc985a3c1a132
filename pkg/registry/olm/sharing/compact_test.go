package sharing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// memory is where a string is.
func memory(s string) *byte { return unsafe.StringData(s) }

// ownText is how many bytes of text a list has that is not that of another one.
func ownText(list, other []olm.RevisionObject) int {
	seen := map[*byte]bool{}
	for i := range other {
		for _, s := range textOf(&other[i]) {
			seen[memory(*s)] = true
		}
	}
	bytes := 0
	for i := range list {
		for _, s := range textOf(&list[i]) {
			if at := memory(*s); *s != "" && !seen[at] {
				seen[at] = true
				bytes += len(*s)
			}
		}
	}
	return bytes
}

// Of two neighbouring revisions, what is equal is one piece of memory.
func TestNeighboursShareText(t *testing.T) {
	const n = 50
	digest := func(number int) string { return fmt.Sprintf("sha256:%064d", number) }
	list := func(change func([]olm.RevisionObject) []olm.RevisionObject) []olm.RevisionObject {
		objects := listOf(n, "")
		for i := range objects {
			objects[i].Digest = digest(i)
		}
		return change(objects)
	}
	same := func(objects []olm.RevisionObject) []olm.RevisionObject { return objects }
	for name, tc := range map[string]struct {
		reason string
		change func([]olm.RevisionObject) []olm.RevisionObject
		// own is how many bytes of text the next revision has for itself.
		own int
	}{
		"OneChanges": {"a release that changes one object", func(objects []olm.RevisionObject) []olm.RevisionObject {
			objects[20].Digest = digest(1000)
			return objects
		}, len(digest(0))},
		"AllChange": {"names stay", func(objects []olm.RevisionObject) []olm.RevisionObject {
			for i := range objects {
				objects[i].Digest = digest(1000 + i)
			}
			return objects
		}, n * len(digest(0))},
		"OneComes": {"those behind it are found", func(objects []olm.RevisionObject) []olm.RevisionObject {
			return slices.Insert(objects, 10, olm.RevisionObject{APIVersion: "v1", Kind: "Kind4", Name: "new", Digest: digest(7777)})
		}, len("new") + len(digest(0))},
		"OneGoes": {"those behind it are found", func(objects []olm.RevisionObject) []olm.RevisionObject {
			return slices.Delete(objects, 10, 11)
		}, 0},
		"OnesMoves": {"to the end, where the search begins anew", func(objects []olm.RevisionObject) []olm.RevisionObject {
			return append(objects[1:], objects[0])
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			entries := NewEntries()
			before := entries.share(here, list(same))
			want := list(tc.change)
			after := entries.share(here, list(tc.change))
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("%s: entries have changed (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(list(same), before); diff != "" {
				t.Errorf("%s: those before have changed (-want +got):\n%s", tc.reason, diff)
			}
			if got := ownText(after, before); got != tc.own {
				t.Errorf("%s: %d bytes of text are the next revision's own, want %d", tc.reason, got, tc.own)
			}
		})
	}
}

// Another extension, or another phase, has its own text: what it listed is nobody's
// neighbour.
func TestOthersShareNothing(t *testing.T) {
	entries := NewEntries()
	first := entries.share(here, listOf(3, "a"))
	longer := append(listOf(3, "a"), olm.RevisionObject{Name: "more"})
	for _, at := range []place{{chain: "other", phase: here.phase}, {chain: here.chain, phase: "two"}} {
		if got := entries.share(at, slices.Clone(longer)); memory(got[0].Name) == memory(first[0].Name) {
			t.Errorf("entries at %v have the text of those at %v", at, here)
		}
	}
}

// What a revision needs no more is not kept for the names that the next ones have of it.
func TestDigestsGoBeforeNames(t *testing.T) {
	list := listOf(2, strings.Repeat("x", 32))
	got := compact(list, nil)
	names, digests := memory(got[0].Name), memory(got[0].Digest)
	if distance := uintptr(unsafe.Pointer(digests)) - uintptr(unsafe.Pointer(names)); distance < 64 {
		t.Errorf("digests begin %d bytes behind names, want another piece of memory", distance)
	}
}
