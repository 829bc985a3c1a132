package observe

import (
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// view is the state of one watch, and its health. It is a state machine without clock, goroutine or
// client; a stream drives it.
//
// Absence is believed while the view is healthy: it has a complete list, and the stream of later
// changes is open, or was open a moment ago.
type view struct {
	mu      sync.RWMutex
	objects map[types.NamespacedName]*Observation
	// ends are the results of deleted Jobs.
	ends map[types.NamespacedName]End
	// version is the resourceVersion up to which all changes were seen.
	version string
	// listed is true when objects is complete at version.
	listed bool
	// open is true while the server streams changes.
	open bool
	// healthy is true when the view is listed and open. It stays true for a moment after a stream
	// closed: streams end every few minutes and are reopened.
	healthy bool
	// trouble is the reason why the view is not healthy. It is nil for a healthy view, and before
	// the first attempt.
	trouble error
}

func newView() view { return view{objects: map[types.NamespacedName]*Observation{}} }

// effect is the result of a step of the view for its users.
type effect struct {
	// state is true when the health of the view, or its reason, has changed.
	state bool
	// objects that changed, appeared or disappeared.
	objects []*Observation
}

func (v *view) put(seen *Observation) (old *Observation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := keyOf(seen)
	old = v.objects[key]
	v.objects[key] = seen
	delete(v.ends, key)
	v.version = seen.ResourceVersion
	return old
}

// remove deletes an object and returns it. last is the object of the deletion event, with the
// version of the deletion.
func (v *view) remove(last *Observation) (old *Observation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := keyOf(last)
	old = v.objects[key]
	delete(v.objects, key)
	if IsJob(last.ID) && last.Object != nil {
		if v.ends == nil || len(v.ends) >= maxEnds {
			v.ends = map[types.NamespacedName]End{}
		}
		v.ends[key] = End{UID: last.UID, Outcome: OutcomeOf(last.ID, last.Object)}
	}
	v.version = last.ResourceVersion
	return old
}

// progress records that there was no change up to a version.
func (v *view) progress(version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.version = version
}

func (v *view) replace(list []*Observation, version string) effect {
	v.mu.Lock()
	defer v.mu.Unlock()
	old := v.objects
	v.objects = make(map[types.NamespacedName]*Observation, len(list))
	v.version, v.listed = version, true
	var done effect
	for _, seen := range list {
		key := keyOf(seen)
		if before := old[key]; !same(before, seen) {
			done.objects = append(done.objects, seen)
			if before != nil {
				done.objects = append(done.objects, before)
			}
		}
		v.objects[key] = seen
		delete(old, key)
	}
	for _, gone := range old {
		done.objects = append(done.objects, gone)
	}
	v.judge()
	// The list itself is news: objects that are absent in it have no event.
	done.state = v.healthy
	return done
}

// opened records that the server streams changes. With relist, the stream begins with a complete
// list, and the old list is not believed any more.
func (v *view) opened(relist bool) effect {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open = true
	if relist {
		v.listed = false
		return effect{}
	}
	return v.judge()
}

// closed records that the stream ended, and returns whether it must be reopened in time (see lost).
func (v *view) closed() (hurry bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open = false
	return v.healthy
}

// lost records that a closed stream was not reopened in time.
func (v *view) lost(why error) effect {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open && v.listed {
		return effect{}
	}
	return v.distrust(why)
}

func (v *view) failed(why error) effect {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.distrust(why)
}

// vanished records that the kind is not served any more, and drops all objects.
func (v *view) vanished(why error) effect {
	v.mu.Lock()
	defer v.mu.Unlock()
	done := v.distrust(why)
	for _, gone := range v.objects {
		done.objects = append(done.objects, gone)
	}
	clear(v.objects)
	v.listed, v.open, v.version = false, false, ""
	return done
}

// judge makes a complete, streaming view healthy.
func (v *view) judge() effect {
	if !v.listed || !v.open {
		return effect{}
	}
	changed := !v.healthy || v.trouble != nil
	v.healthy, v.trouble = true, nil
	return effect{state: changed}
}

// distrust makes a view unhealthy, with a reason. Another kind of reason is news: a server that is
// reachable again may refuse the watch. So is the cause of errNotResumed, which is found later.
func (v *view) distrust(why error) effect {
	changed := v.healthy || v.trouble == nil || apierrors.ReasonForError(v.trouble) != apierrors.ReasonForError(why) ||
		errors.Is(v.trouble, errNotResumed) && !errors.Is(why, errNotResumed)
	v.healthy, v.trouble = false, why
	return effect{state: changed}
}

type answer struct {
	object  *Observation
	healthy bool
	version string
	trouble error
	// end of an absent Job; nil if the view did not see it.
	end *End
}

func (v *view) see(key types.NamespacedName) answer {
	v.mu.RLock()
	defer v.mu.RUnlock()
	a := answer{object: v.objects[key], healthy: v.healthy, version: v.version, trouble: v.trouble}
	if end, ended := v.ends[key]; ended {
		a.end = &end
	}
	return a
}

// current reports whether the view is complete and streaming.
func (v *view) current() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.listed && v.open
}

func (v *view) size() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.objects)
}

func keyOf(seen *Observation) types.NamespacedName {
	return types.NamespacedName{Namespace: seen.ID.Namespace, Name: seen.ID.Name}
}
