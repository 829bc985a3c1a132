// Package sharing keeps decoded revisions small: equal parts of several revisions are in memory
// once.
package sharing

import (
	"hash/maphash"
	"runtime"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// Codec returns a codec for the store. Decoded revisions are packed (olm.PackedObjects), share
// texts and managedFields, and have no spare capacity.
//
// A server holds a revision several times: in the watch cache and in recent events. Codec keeps
// nothing of deleted revisions.
func Codec(codec apiruntime.Codec) apiruntime.Codec {
	return sharingCodec{Codec: codec, fields: &fields{seed: maphash.MakeSeed(), known: map[uint64]weak.Pointer[metav1.FieldsV1]{}}}
}

type sharingCodec struct {
	apiruntime.Codec
	fields *fields
}

// Decode implements runtime.Decoder.
func (c sharingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into apiruntime.Object) (apiruntime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if revision, ok := object.(*olm.ClusterExtensionRevision); ok && err == nil {
		trim(revision)
		for i := range revision.Spec.Phases {
			revision.Spec.Phases[i].Pack()
		}
		for i := range revision.ManagedFields {
			manager := &revision.ManagedFields[i]
			manager.FieldsV1 = c.fields.share(manager.FieldsV1)
		}
	}
	return object, kind, err
}

// fields holds one copy of equal managedFields. Clients that send revisions of the same form
// produce the same fields. Decoded fields are never changed in place: a changed manager gets new
// fields.
type fields struct {
	seed  maphash.Seed
	mu    sync.Mutex
	known map[uint64]weak.Pointer[metav1.FieldsV1]
}

// share returns fields equal to those given.
func (f *fields) share(given *metav1.FieldsV1) *metav1.FieldsV1 {
	if given == nil {
		return nil
	}
	key := maphash.Bytes(f.seed, given.GetRawBytes())
	f.mu.Lock()
	defer f.mu.Unlock()
	if held := f.known[key].Value(); held != nil && held.Equal(*given) {
		return held
	}
	pointer := weak.Make(given)
	f.known[key] = pointer
	runtime.AddCleanup(given, func(key uint64) { f.forget(key, pointer) }, key)
	return given
}

// forget removes fields that are no longer used, unless the key now has other fields.
func (f *fields) forget(key uint64, gone weak.Pointer[metav1.FieldsV1]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[key] == gone {
		delete(f.known, key)
	}
}
