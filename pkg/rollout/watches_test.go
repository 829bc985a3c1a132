package rollout

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// watches models the delivery of changes, with one stream per kind. Changes of one kind arrive in
// order; changes of several kinds arrive in any order. A restarted watch skips the changes in
// between. The watch of a new process may begin before the last seen change.
type watches struct {
	// watched is the state that the streams have delivered; delivered is the position of each
	// stream, by kind.
	watched   map[manifest.ID]*thing
	delivered map[schema.GroupKind]int
	// past are the delivered changes; changes are the pending ones.
	past, changes []change
	lagging       bool
	// news is true when a watch has reported a change to the process.
	news bool
}

// change is the state of an object from a version on.
type change struct {
	id      manifest.ID
	now     *thing // nil after a deletion
	version int
	// shown is true when a watch reports the change.
	shown bool
}

func newWatches() watches {
	return watches{watched: map[manifest.ID]*thing{}, delivered: map[schema.GroupKind]int{}}
}

func (w *watches) happened(c change) {
	w.changes = append(w.changes, c)
	if !w.lagging {
		w.deliver(len(w.changes))
	}
}

func (w *watches) upTo(id manifest.ID) int { return max(1, w.delivered[id.GroupKind()]) }

// deliver delivers the next n changes, in order.
func (w *watches) deliver(n int) {
	n = min(n, len(w.changes))
	for _, c := range w.changes[:n] {
		w.see(c)
	}
	w.changes = slices.Delete(w.changes, 0, n)
}

// deliverOf delivers the next n changes of one kind, ahead of the other kinds.
func (w *watches) deliverOf(kind schema.GroupKind, n int) {
	w.changes = slices.DeleteFunc(w.changes, func(c change) bool {
		if c.id.GroupKind() != kind || n == 0 {
			return false
		}
		n--
		w.see(c)
		return true
	})
}

// relist restarts the watch of a kind: it delivers the current state and skips the changes in
// between.
func (w *watches) relist(kind schema.GroupKind) {
	last := map[manifest.ID]change{}
	for _, c := range w.changes {
		last[c.id] = c
	}
	w.changes = slices.DeleteFunc(w.changes, func(c change) bool {
		if c.id.GroupKind() != kind {
			return false
		}
		if last[c.id] == c {
			w.see(c)
		}
		return true
	})
}

// rewind moves the watch of a kind back by n changes, which are then delivered again. The watch of
// a new process may do that when its API server lags.
func (w *watches) rewind(kind schema.GroupKind, n int) {
	var past, again []change
	for _, c := range slices.Backward(w.past) {
		if c.id.GroupKind() == kind && len(again) < n {
			again = append(again, c)
		} else {
			past = append(past, c)
		}
	}
	slices.Reverse(again)
	slices.Reverse(past)
	w.changes, w.past, w.watched = append(again, w.changes...), nil, map[manifest.ID]*thing{}
	delete(w.delivered, kind)
	for _, c := range past {
		w.see(c)
	}
}

func (w *watches) see(c change) {
	w.past = append(w.past, c)
	w.news = w.news || c.shown
	w.delivered[c.id.GroupKind()] = max(w.delivered[c.id.GroupKind()], c.version)
	if c.now == nil {
		delete(w.watched, c.id)
	} else {
		w.watched[c.id] = c.now
	}
}
