package observe

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// source is a target that owners want, and the stream that watches it. If more fields must be kept
// than the current stream keeps, a next stream replaces it once it is ready.
type source struct {
	target
	owners  map[string]struct{}
	current *stream
	next    *stream
}

// newest returns the stream that keeps the most fields.
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
	named    map[manifest.ID][]*source
	// reads are the joined reads of a kind. They only grow until no owner wants the kind: keeping
	// unneeded fields does not harm.
	reads map[schema.GroupKind]kindReads
}

type kindReads struct {
	probe.Reads
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

// of returns the sources that show an object, and the sources that can prove its absence. A watch
// by label does not show objects without the label. So if a watch by name exists, only that one
// proves absence.
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

func targetOf(i Interest) target {
	t := target{GroupVersionKind: i.GroupVersionKind()}
	if i.ByName {
		t.Namespace, t.Name = i.ID.Namespace, i.ID.Name
	}
	return t
}

// drop removes an element from a list in a map.
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
