package observe

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// source is a target that somebody wants, and the stream that serves it. While
// more has to be kept of the objects than the stream keeps, a second one gets
// ready to take its place.
type source struct {
	target
	// owners that want it.
	owners  map[string]struct{}
	current *stream
	next    *stream
}

// newest is the stream with the most that is kept.
func (s *source) newest() *stream {
	if s.next != nil {
		return s.next
	}
	return s.current
}

// sources are all watched targets. The lock of the cache guards them.
type sources struct {
	all map[target]*source
	// labelled are the sources by label of a kind: one per version in use.
	labelled map[schema.GroupKind][]*source
	// named are the sources by name of an object.
	named map[manifest.ID][]*source
	// reads unites what is read of a kind. It only grows, until nobody wants the
	// kind: a watch is not worth less when it keeps more than needed.
	reads map[schema.GroupKind]kindReads
}

type kindReads struct {
	probe.Reads
	// sources of the kind.
	sources int
}

func newSources() sources {
	return sources{
		all:      map[target]*source{},
		labelled: map[schema.GroupKind][]*source{},
		named:    map[manifest.ID][]*source{},
		reads:    map[schema.GroupKind]kindReads{},
	}
}

// add returns the source of a target, a new one if need be.
func (s *sources) add(t target) *source {
	if src, ok := s.all[t]; ok {
		return src
	}
	src := &source{target: t, owners: map[string]struct{}{}}
	s.all[t] = src
	kind := t.GroupKind()
	if t.byName() {
		id := t.id()
		s.named[id] = append(s.named[id], src)
	} else {
		s.labelled[kind] = append(s.labelled[kind], src)
	}
	reads := s.reads[kind]
	reads.sources++
	s.reads[kind] = reads
	return src
}

// remove forgets a source.
func (s *sources) remove(src *source) {
	delete(s.all, src.target)
	kind := src.GroupKind()
	if src.byName() {
		drop(s.named, src.id(), src)
	} else {
		drop(s.labelled, kind, src)
	}
	reads := s.reads[kind]
	if reads.sources--; reads.sources > 0 {
		s.reads[kind] = reads
	} else {
		delete(s.reads, kind)
	}
}

// of returns the sources that can tell about an object, and those of them that
// can tell that it is absent: a watch by label does not see objects without
// the label, so only a watch by name proves absence where there is one.
func (s *sources) of(id manifest.ID) (showing, deciding []*source) {
	named, labelled := s.named[id], s.labelled[id.GroupKind()]
	if len(named) == 0 {
		return labelled, labelled
	}
	showing = make([]*source, 0, len(named)+len(labelled))
	return append(append(showing, named...), labelled...), named
}

func (t target) id() manifest.ID {
	return manifest.ID{Group: t.Group, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
}

func (t target) key() types.NamespacedName {
	return types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
}

// targetOf an interest.
func targetOf(i Interest) target {
	t := target{GroupVersionKind: i.GroupVersionKind()}
	if i.ByName {
		t.Namespace, t.Name = i.ID.Namespace, i.ID.Name
	}
	return t
}

// drop removes one element of a map of lists.
func drop[K, V comparable](lists map[K][]V, key K, unwanted V) {
	var kept []V
	for _, v := range lists[key] {
		if v != unwanted {
			kept = append(kept, v)
		}
	}
	if len(kept) == 0 {
		delete(lists, key)
		return
	}
	lists[key] = kept
}
