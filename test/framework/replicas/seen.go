package replicas

import (
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seen records the events that a watcher has received.
type seen struct {
	name string
	mu   sync.Mutex
	// versions are the seen versions of each revision, names are the revisions with any event, and
	// gone are the revisions with a deletion event.
	versions    map[ack]bool
	names, gone map[string]bool
	// gaps are ranges of versions that a list skipped. present are the objects of the last list.
	gaps    []gap
	present map[string]bool
	resumed int
	relists int
	newest  uint64
}

// gap is a range of versions without events, because a list returned their result.
type gap struct{ after, to uint64 }

// watched checks that a watcher has seen every acknowledged write.
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

// event records an event and checks the order.
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
