package replicas

import (
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seen has the events that a watcher has received.
type seen struct {
	name string
	mu   sync.Mutex
	// versions are those that there was an event of, with the revision's name; names
	// those that there was any event of; gone those that there was a deletion of.
	versions    map[ack]bool
	names, gone map[string]bool
	// gaps are objects that were listed, but not watched. present has the objects of the last
	// listing.
	gaps    []gap
	present map[string]bool
	resumed int
	relists int
	newest  uint64
}

// gap is versions of which no events came, because a listing told what they led to.
type gap struct{ after, to uint64 }

// watched checks that somebody has seen every acknowledged write.
func (j *journal) watched(w *seen) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range j.acks {
		var missed bool
		switch {
		case a.deleted:
			missed = !w.gone[a.name] && (w.relists == 0 || w.present[a.name])
		case a.version == 0:
			missed = !w.names[a.name] && w.relists == 0
		default:
			missed = !w.versions[a] && !slices.ContainsFunc(w.gaps, func(g gap) bool { return g.after < a.version && a.version <= g.to })
		}
		if missed {
			j.wrong = append(j.wrong, fmt.Sprintf("%s did not see %s at version %d (deleted: %v)", w.name, a.name, a.version, a.deleted))
		}
	}
}

// event notes what came, in its order.
func (w *seen) event(j *journal, o metav1.Object, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	version := number(o.GetResourceVersion())
	if version <= w.newest {
		j.violation("%s saw version %d of %s after %d", w.name, version, o.GetName(), w.newest)
	}
	w.newest = version
	w.names[o.GetName()] = true
	w.versions[ack{name: o.GetName(), version: version}] = true
	if deleted {
		w.gone[o.GetName()] = true
	}
}
