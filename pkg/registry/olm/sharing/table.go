package sharing

import (
	"runtime"
	"sync"
	"unsafe"
	"weak"
)

// table has lists that revisions have in common, each under a key that is made of its
// content. It holds on to none of them: when the last revision with a list is gone, the
// list is.
type table[K comparable, T any] struct {
	mu    sync.Mutex
	known map[K]listed[T]
}

// listed is a list, as long as somebody has it.
type listed[T any] struct {
	first weak.Pointer[T]
	n     int
}

func newTable[K comparable, T any]() *table[K, T] {
	return &table[K, T]{known: map[K]listed[T]{}}
}

// get returns the list under a key, nil when nobody has one.
func (t *table[K, T]) get(key K) []T {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[key].list()
}

// put makes a list the one under a key. It must have an element, and be new: each put
// costs memory for as long as the list is there.
func (t *table[K, T]) put(key K, list []T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := weak.Make(&list[0])
	t.known[key] = listed[T]{first: first, n: len(list)}
	runtime.AddCleanup(&list[0], func(key K) { t.forget(key, first) }, key)
}

// forget drops a list that nobody has any more, if it is still the one that a key
// stands for.
func (t *table[K, T]) forget(key K, first weak.Pointer[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[key].first == first {
		delete(t.known, key)
	}
}

// count is how many lists are known.
func (t *table[K, T]) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.known)
}

// list are the elements, nil when nobody has them any more.
func (l listed[T]) list() []T {
	first := l.first.Value()
	if first == nil {
		return nil
	}
	// A weak pointer to the first element brings back the whole array, whose
	// length it does not know.
	return unsafe.Slice(first, l.n)
}
