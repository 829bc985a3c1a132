package pack

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
)

// TestPackIsRead: any encoded pack decodes to the same objects. The test covers sizes around the
// limit.
func TestPackIsRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var objects []manifest.Object
		total := 0
		for i := range rapid.IntRange(0, 5).Draw(r, "objects") {
			o := object(t, "ConfigMap", fmt.Sprint("a", i), strings.Repeat("<", rapid.IntRange(0, 200).Draw(r, "length")))
			objects = append(objects, o)
			total += len(o.JSON)
		}
		s := New(nil, "/p", digester(), MaxBytes(max(0, total+rapid.IntRange(-2, 2).Draw(r, "room"))))
		root, content, err := s.encode(objects)
		if err != nil {
			if !errors.As(err, new(*TooLargeError)) || total <= s.maxBytes {
				r.Fatalf("%d bytes with %d allowed: %v", total, s.maxBytes, err)
			}
			return
		}
		mustOpen(r, s, root, content, len(objects))
	})
}

// TestLargestIndex: a pack with the largest allowed index and bodies can be read. Its content is
// slightly larger than both together.
func TestLargestIndex(t *testing.T) {
	var objects []manifest.Object
	total := 0
	add := func(i, length int) {
		o := object(t, "ConfigMap", fmt.Sprintf("%06d%s", i, strings.Repeat("n", length)), "1")
		objects, total = append(objects, o), total+len(o.JSON)
	}
	measure := func() int {
		_, content, err := New(nil, "/p", digester()).encode(objects)
		if err != nil {
			t.Fatal(err)
		}
		length := len(content) - total
		return length - 4 // minus the length of the index, as uvarint
	}
	for i := range 1000 {
		add(i, 3900)
	}
	// The last body gets the remaining length in a second try, because the index contains its size.
	add(1000, 100_000)
	rest := 100_000 + maxIndexBytes - measure()
	objects, total = objects[:1000], total-len(objects[1000].JSON)
	add(1000, rest)
	if got := measure(); got != maxIndexBytes {
		t.Fatalf("the index has %d bytes, want %d", got, maxIndexBytes)
	}
	s := New(nil, "/p", digester(), MaxBytes(total))
	root, content, err := s.encode(objects)
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, s, root, content, len(objects))
}

func mustOpen(t rapid.TB, s *Store, root string, content []byte, objects int) {
	sealed, err := seal(content, ChunkBytes)
	if err != nil {
		t.Fatal(err)
	}
	header, frame, err := parseRecord("/key", sealed.record)
	if err != nil {
		t.Fatal(err)
	}
	for _, chunk := range sealed.chunks {
		frame = append(frame, chunk.data...)
	}
	opened, err := header.open(frame, nil, s.maxContentBytes())
	if err != nil {
		t.Fatalf("%d bytes were packed and cannot be opened: %v", len(content), err)
	}
	if got, err := s.decode(root, opened); err != nil || len(got) != objects {
		t.Fatalf("%d objects were packed, %d come back, error %v", objects, len(got), err)
	}
	if _, err := header.open(frame, nil, len(content)-1); len(content) > 0 && !errors.Is(err, store.ErrTooLarge) {
		t.Fatalf("a limit below the content is passed: %v", err)
	}
}
