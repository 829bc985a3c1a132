// Package sharing keeps revisions that were decoded small: what many of them have in
// common is in memory once.
package sharing

import (
	"hash/maphash"
	"slices"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// Entries keeps one copy in memory of what phases list. What a phase lists never
// changes and is most of a revision, and a server has the same revision several
// times: in the watch cache and in each event of it that a watcher may still ask
// for. Of the next revision of an extension most entries are equal to those of the one
// before, and their text is in memory once, too. So are, of all revisions, who asked for
// them and which fields they have been given.
//
// Whoever gets a revision that shares must not change in place what it shares, as
// with anything that comes from a cache. It holds on to nothing: when the last
// revision with them is gone, the entries are.
type Entries struct {
	seed maphash.Seed
	// lists are those of phases, by what is in them, and newest are the same by
	// the phase of an extension that had them last.
	lists  *table[uint64, olm.RevisionObject]
	newest *table[place, olm.RevisionObject]
	// packed, requesters and fields are lists of one.
	packed     *table[packedKey, olm.PackedObjects]
	requesters *table[uint64, olm.Requester]
	fields     *table[uint64, metav1.FieldsV1]
}

// place is where entries were found.
type place struct{ chain, phase string }

// packedKey is a packed phase, by where its shape is in memory and what is its own.
type packedKey struct {
	shape weak.Pointer[olm.RevisionObject]
	own   uint64
}

// NewEntries returns one that knows nothing yet.
func NewEntries() *Entries {
	return &Entries{
		seed: maphash.MakeSeed(), lists: newTable[uint64, olm.RevisionObject](), newest: newTable[place, olm.RevisionObject](),
		packed: newTable[packedKey, olm.PackedObjects](), requesters: newTable[uint64, olm.Requester](), fields: newTable[uint64, metav1.FieldsV1](),
	}
}

// Codec is a codec for the store: revisions that it decodes are packed (olm.PackedObjects),
// share what others have too, and have no more memory than they need.
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
		trim(revision)
		chain, _, _ := olm.ChainOf(revision.Name)
		for p := range revision.Spec.Phases {
			phase := &revision.Spec.Phases[p]
			c.entries.pack(place{chain: chain, phase: phase.Name}, phase)
		}
		c.entries.shareFields(revision.ManagedFields)
		revision.Status.RequestedBy = c.entries.shareRequester(revision.Status.RequestedBy)
	}
	return object, kind, err
}

// pack packs the entries of a phase. Its shape, which the next revision of an extension
// mostly has too, is shared, and so is all of it with the same revision that was decoded
// before. Entries that cannot be packed are shared as they are.
func (e *Entries) pack(at place, phase *olm.RevisionPhase) {
	packed, ok := olm.Pack(phase.Objects)
	if !ok || len(phase.Objects) == 0 {
		phase.Objects = e.share(at, phase.Objects)
		return
	}
	packed.Shape = e.share(at, packed.Shape)
	key := packedKey{weak.Make(&packed.Shape[0]), maphash.String(e.seed, packed.Own)}
	phase.Objects = nil
	if held := e.packed.get(key); len(held) == 1 && held[0].Own == packed.Own {
		phase.Packed = &held[0]
		return
	}
	fresh := []olm.PackedObjects{packed}
	e.packed.put(key, fresh)
	phase.Packed = &fresh[0]
}

// share returns entries equal to those given: those that somebody has already, or
// else a compact copy, which has the text of the entries that were at that place
// before where it is equal. With a manifest inline they are nobody else's.
func (e *Entries) share(at place, objects []olm.RevisionObject) []olm.RevisionObject {
	inline := func(object olm.RevisionObject) bool { return object.Object != nil }
	if len(objects) == 0 || slices.ContainsFunc(objects, inline) {
		return objects
	}
	key := e.hash(objects)
	if held := e.lists.get(key); slices.Equal(held, objects) {
		return held
	}
	fresh := compact(objects, e.newest.get(at))
	e.lists.put(key, fresh)
	e.newest.put(at, fresh)
	return fresh
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
