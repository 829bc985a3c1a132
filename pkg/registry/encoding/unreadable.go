package encoding

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"path"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/store"
)

// An unreadable record would stop every list and watch of its resource, and with them the watch
// cache, creates and controllers. So lists and watches contain a placeholder, which
// objectmeta.IsUnreadable recognises. The record is not omitted: a missing record must not count as
// absent. Reading or changing the object itself is an error. Three types implement this:
//
//   - keyed passes the key of a record to the codec, for lists and watches.
//   - placing decodes a record. It returns a placeholder for a record that cannot be decoded, or
//     that belongs to another object.
//   - guarded prevents reads, updates and deletes of placeholders. Its context tells keyed that an
//     operation is on one object. Then keyed passes the bytes unchanged, because an update compares
//     them with its own bytes. keyed itself then checks that the record belongs to the object.

// Placeholder returns the placeholder, of the internal version, for the record of an object.
type Placeholder func(name string, why error) runtime.Object

// magicKeyed is the prefix that keyed adds. No record begins with it.
const magicKeyed = "\x00penstock key\x00"

type oneKey struct{}

// keyed is a transformer that only reads.
type keyed struct {
	value.Transformer
	records placing
}

// TransformFromStorage implements value.Read.
func (k keyed) TransformFromStorage(ctx context.Context, data []byte, about value.Context) ([]byte, bool, error) {
	data, stale, err := k.Transformer.TransformFromStorage(ctx, data, about)
	if err != nil {
		return data, stale, err
	}
	key := about.AuthenticatedData()
	if ctx.Value(oneKey{}) != nil {
		if object, _, err := k.records.Codec.Decode(data, nil, nil); err == nil {
			if err := k.records.misplaced(string(key), object); err != nil {
				return nil, false, &undecodableError{err}
			}
		}
		return data, stale, nil // the codec reports an undecodable record
	}
	out := make([]byte, 0, len(magicKeyed)+binary.MaxVarintLen64+len(key)+len(data))
	out = append(out, magicKeyed...)
	out = binary.AppendUvarint(out, uint64(len(key)))
	out = append(out, key...)
	return append(out, data...), stale, nil
}

// untransformed is a transformer that changes nothing.
type untransformed struct{}

// TransformFromStorage implements value.Read.
func (untransformed) TransformFromStorage(_ context.Context, data []byte, _ value.Context) ([]byte, bool, error) {
	return data, false, nil
}

// TransformToStorage implements value.Write.
func (untransformed) TransformToStorage(_ context.Context, data []byte, _ value.Context) ([]byte, error) {
	return data, nil
}

// placing is the codec of the store.
type placing struct {
	runtime.Codec
	place Placeholder
	known *store.Unreadable
	// stored is the type of the stored objects.
	stored reflect.Type
}

// undecodableError marks an error of decoding a record.
type undecodableError struct{ err error }

func (e *undecodableError) Error() string { return e.err.Error() }
func (e *undecodableError) Unwrap() error { return e.err }

// Decode implements runtime.Decoder.
func (p placing) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	rest, withKey := bytes.CutPrefix(data, []byte(magicKeyed))
	var key string
	if withKey {
		// keyed encoded the length, in this process.
		length, n := binary.Uvarint(rest)
		key, rest = string(rest[n:n+int(length)]), rest[n+int(length):]
	}
	object, kind, err := p.Codec.Decode(rest, defaults, into)
	if err == nil && withKey {
		err = p.misplaced(key, object)
	}
	if err == nil {
		return object, kind, nil
	}
	if !withKey {
		return nil, nil, &undecodableError{err}
	}
	if p.known.Note(key, rest, err) {
		klog.Background().WithName("store").Error(err, "A record cannot be read; its extension or profile is left as it is, everything else continues", "key", key)
	}
	// Lists use the returned object, and watches pass no object to decode into.
	return p.place(path.Base(key), err), kind, nil
}

// misplaced returns an error if an object does not belong to its key. So no object is read under
// another object's key.
func (p placing) misplaced(key string, object runtime.Object) error {
	if found := reflect.TypeOf(object); found != p.stored {
		return fmt.Errorf("it is a record of another kind, %s", found.Elem().Name())
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if accessor.GetName() != path.Base(key) || accessor.GetNamespace() != "" {
		return fmt.Errorf("it is the record of %s", path.Join(accessor.GetNamespace(), accessor.GetName()))
	}
	return nil
}

// guarded is the storage of a resource, without access to placeholders.
type guarded struct {
	storage.Interface
	resource schema.GroupResource
}

func one(ctx context.Context) context.Context { return context.WithValue(ctx, oneKey{}, true) }

// Create implements storage.Interface.
func (g guarded) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return g.explain(g.Interface.Create(one(ctx), key, obj, out, ttl), key)
}

// Get implements storage.Interface.
func (g guarded) Get(ctx context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	if err := g.Interface.Get(one(ctx), key, options, out); err != nil {
		return g.explain(err, key)
	}
	return g.refuse(out) // The watch cache may return a placeholder.
}

// GuaranteedUpdate implements storage.Interface.
func (g guarded) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions,
	update storage.UpdateFunc, cached runtime.Object) error {
	judged := func(existing runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if err := g.refuse(existing); err != nil {
			return nil, nil, err
		}
		return update(existing, meta)
	}
	return g.explain(g.Interface.GuaranteedUpdate(one(ctx), key, out, ignoreNotFound, preconditions, judged, cached), key)
}

// Delete implements storage.Interface. It allows the unsafe deletion of an unreadable record.
func (g guarded) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, options storage.DeleteOptions) error {
	judged := validate
	if !options.ExpectTransformOrDecodeError {
		judged = func(ctx context.Context, existing runtime.Object) error {
			if err := g.refuse(existing); err != nil {
				return err
			}
			return validate(ctx, existing)
		}
	}
	return g.explain(g.Interface.Delete(one(ctx), key, out, preconditions, judged, cached, options), key)
}

// refuse returns an error if an object is a placeholder.
func (g guarded) refuse(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil || !objectmeta.IsUnreadable(accessor) {
		return nil
	}
	return NewUnreadable(g.resource, accessor.GetName(), errors.New(accessor.GetAnnotations()[objectmeta.UnreadableAnnotation]))
}

func (g guarded) explain(err error, key string) error {
	var undecodable *undecodableError
	switch {
	case errors.As(err, &undecodable):
		return NewUnreadable(g.resource, path.Base(key), undecodable.err)
	case storage.IsCorruptObject(err):
		return NewUnreadable(g.resource, path.Base(key), err)
	}
	return err
}

// NewUnreadable returns the error for an object whose record is unreadable: 500.
func NewUnreadable(resource schema.GroupResource, name string, why error) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Details: &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource, Name: name},
		Message: fmt.Sprintf("the record of %s %q cannot be read from the store, and its extension or profile is left as it is: %v. "+
			"What to do: restore a snapshot, or give the record up, see the runbook PenstockStoreUnreadable", resource, name, why),
	}}
}
