package observe

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// store is where a reflector puts what it sees: trimmed, into the view. There is
// no queue behind it as informers have, because nothing waits: an event is a
// comparison and, when it matters, a call of Notify.
type store struct{ *stream }

var (
	_ cache.TransformingStore      = store{}
	_ cache.ReflectorBookmarkStore = store{}
)

// Add stores an object.
func (s store) Add(delivered any) error {
	seen, err := s.keep(delivered)
	if err != nil {
		return err
	}
	s.changed(s.stream, s.put(seen), seen)
	return nil
}

// Update stores an object.
func (s store) Update(delivered any) error { return s.Add(delivered) }

// Delete forgets an object, because it was deleted or lost its label.
func (s store) Delete(delivered any) error {
	last, err := s.keep(delivered)
	if err != nil {
		return err
	}
	s.changed(s.stream, s.remove(last), nil)
	return nil
}

// Replace takes a complete list.
func (s store) Replace(items []any, version string) error {
	list := make([]*Observation, len(items))
	for i, item := range items {
		seen, err := s.keep(item)
		if err != nil {
			return fmt.Errorf("item %d of the list: %w", i, err)
		}
		list[i] = seen
	}
	s.settle(s.replace(list, version))
	return nil
}

// Bookmark notes that nothing happened up to a version.
func (s store) Bookmark(version string) error {
	s.progress(version)
	return nil
}

// Resync is nothing: nobody asks to be told the same again.
func (s store) Resync() error { return nil }

// Transformer trims a streamed list while it arrives, so that it is never in
// memory as a whole.
func (s store) Transformer() cache.TransformFunc {
	return func(delivered any) (any, error) { return s.keep(delivered) }
}
