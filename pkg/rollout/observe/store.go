package observe

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// store receives the events of a reflector and puts trimmed objects into the view. It needs no
// queue like an informer's, because handling an event only compares objects.
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

// Delete removes an object that was deleted or lost its label.
func (s store) Delete(delivered any) error {
	last, err := s.keep(delivered)
	if err != nil {
		return err
	}
	s.changed(s.stream, s.remove(last), nil)
	return nil
}

// Replace stores a complete list.
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

// Bookmark records that nothing changed up to a version.
func (s store) Bookmark(version string) error {
	s.progress(version)
	return nil
}

// Resync does nothing, because no caller wants repeated events.
func (s store) Resync() error { return nil }

// Transformer trims the objects of a streamed list as they arrive, so that the whole list is never
// in memory.
func (s store) Transformer() cache.TransformFunc {
	return func(delivered any) (any, error) { return s.keep(delivered) }
}
