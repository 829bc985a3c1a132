package clusterextensionrevision

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// unpackedStorage returns unpacked revisions, as the registry's code expects. The watch cache below
// it holds them packed (see olm.PackedObjects).
//
// Events of a watch stay packed: encoders and printers accept them, and only Local uses them
// otherwise. Lists with the packed context stay packed too.
type unpackedStorage struct{ storage.Interface }

type packedKey struct{}

// packed makes reads with this context return revisions packed, as the watch cache holds them.
// Conversion and tables use it.
func packed(ctx context.Context) context.Context { return context.WithValue(ctx, packedKey{}, true) }

func isPacked(ctx context.Context) bool { return ctx.Value(packedKey{}) != nil }

// Create implements storage.Interface.
func (u unpackedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := u.Interface.Create(ctx, key, obj, out, ttl); err != nil {
		return err
	}
	unpack(out)
	return nil
}

// Get implements storage.Interface.
func (u unpackedStorage) Get(ctx context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	if err := u.Interface.Get(ctx, key, options, out); err != nil {
		return err
	}
	if !isPacked(ctx) {
		unpack(out)
	}
	return nil
}

// GetList implements storage.Interface.
func (u unpackedStorage) GetList(ctx context.Context, key string, options storage.ListOptions, out runtime.Object) error {
	if err := u.Interface.GetList(ctx, key, options, out); err != nil {
		return err
	}
	if list, ok := out.(*olm.ClusterExtensionRevisionList); ok && !isPacked(ctx) {
		for i := range list.Items {
			list.Items[i].Unpack()
		}
	}
	return nil
}

// GuaranteedUpdate implements storage.Interface.
func (u unpackedStorage) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions,
	update storage.UpdateFunc, cached runtime.Object) error {
	unpacking := func(existing runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		unpack(existing)
		return update(existing, meta)
	}
	if err := u.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, unpacking, cached); err != nil {
		return err
	}
	unpack(out)
	return nil
}

// Delete implements storage.Interface.
func (u unpackedStorage) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, options storage.DeleteOptions) error {
	unpacking := func(ctx context.Context, existing runtime.Object) error {
		unpack(existing)
		return validate(ctx, existing)
	}
	if err := u.Interface.Delete(ctx, key, out, preconditions, unpacking, cached, options); err != nil {
		return err
	}
	unpack(out)
	return nil
}

func unpack(object runtime.Object) {
	if revision, ok := object.(*olm.ClusterExtensionRevision); ok {
		revision.Unpack()
	}
}

// unpackedCodec is a codec that unpacks decoded revisions. A dry-run returns the decoded object.
type unpackedCodec struct{ runtime.Codec }

// Decode implements runtime.Decoder.
func (c unpackedCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if err == nil {
		unpack(object)
	}
	return object, kind, err
}
