// Package sharing keeps revisions that were decoded small: what many of them have in
// common is in memory once.
package sharing

import (
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"
	"weak"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// Entries keeps one copy in memory of what phases list. What a phase lists never
// changes and is most of a revision, and a server has the same revision several
// times: in the watch cache and in each event of it that a watcher may still ask
// for.
//
// Whoever gets a revision that shares entries must not change them in place, as
// with anything that comes from a cache. It holds on to nothing: when the last
// revision with them is gone, the entries are.
type Entries struct {
	seed maphash.Seed

	mu    sync.Mutex
	known map[uint64]listed
}

// listed is what one phase lists, as long as a revision has it.
type listed struct {
	first weak.Pointer[olm.RevisionObject]
	n     int
}

// NewEntries returns one that knows nothing yet.
func NewEntries() *Entries {
	return &Entries{seed: maphash.MakeSeed(), known: map[uint64]listed{}}
}

// Codec is a codec for the store: revisions that it decodes share their entries, and
// have no more memory than they need.
func (e *Entries) Codec(codec apiruntime.Codec) apiruntime.Codec {
	return sharingCodec{Codec: codec, entries: e}
}

type sharingCodec struct {
	apiruntime.Codec
	entries *Entries
}

// Decode implements runtime.Decoder.
func (c sharingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into apiruntime.Object) (apiruntime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if revision, ok := object.(*olm.ClusterExtensionRevision); ok && err == nil {
		for p := range revision.Spec.Phases {
			phase := &revision.Spec.Phases[p]
			phase.Objects = c.entries.share(phase.Objects)
		}
		trim(revision)
	}
	return object, kind, err
}

// share returns entries equal to those given: those that somebody has already, or
// else a compact copy. With a manifest inline they are nobody else's.
func (e *Entries) share(objects []olm.RevisionObject) []olm.RevisionObject {
	inline := func(object olm.RevisionObject) bool { return object.Object != nil }
	if len(objects) == 0 || slices.ContainsFunc(objects, inline) {
		return objects
	}
	key := e.hash(objects)
	e.mu.Lock()
	defer e.mu.Unlock()
	if held := e.known[key].objects(); slices.Equal(held, objects) {
		return held
	}
	fresh := compact(objects)
	first := weak.Make(&fresh[0])
	e.known[key] = listed{first: first, n: len(fresh)}
	runtime.AddCleanup(&fresh[0], func(key uint64) { e.forget(key, first) }, key)
	return fresh
}

// forget drops entries that nobody has any more, if they are still those that a
// key stands for.
func (e *Entries) forget(key uint64, first weak.Pointer[olm.RevisionObject]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known[key].first == first {
		delete(e.known, key)
	}
}

// objects are the entries, nil when nobody has them any more.
func (l listed) objects() []olm.RevisionObject {
	first := l.first.Value()
	if first == nil {
		return nil
	}
	// A weak pointer to the first element brings back the whole array, whose
	// length it does not know.
	return unsafe.Slice(first, l.n)
}

// hash tells entries apart that differ in anything.
func (e *Entries) hash(objects []olm.RevisionObject) uint64 {
	var h maphash.Hash
	h.SetSeed(e.seed)
	for i := range objects {
		for _, s := range textOf(&objects[i]) {
			maphash.WriteComparable(&h, *s)
		}
		maphash.WriteComparable(&h, objects[i].Size)
	}
	return h.Sum64()
}

// compact copies entries into two pieces of memory, one for all of their text:
// twenty thousand revisions are a million strings that the garbage collector
// would look at one by one. Text that an entry has from the one before it is
// there once; objects of one kind mostly stand together.
func compact(objects []olm.RevisionObject) []olm.RevisionObject {
	fresh := slices.Clip(slices.Clone(objects))
	var text strings.Builder
	for _, write := range []bool{false, true} {
		last, size := &olm.RevisionObject{}, 0
		for i := range fresh {
			before := textOf(last)
			for t, s := range textOf(&fresh[i]) {
				switch {
				case *s == *before[t]:
					*s = *before[t]
				case write:
					start := text.Len()
					_, _ = text.WriteString(*s)
					*s = text.String()[start:]
				default:
					size += len(*s)
				}
			}
			last = &fresh[i]
		}
		if !write {
			// It must not grow: what was taken from it would keep the old memory.
			text.Grow(size)
		}
	}
	return fresh
}

// textOf are the strings of an entry.
func textOf(object *olm.RevisionObject) [6]*string {
	return [6]*string{&object.APIVersion, &object.Kind, &object.Namespace, &object.Name, &object.Digest, (*string)(&object.CollisionProtection)}
}
