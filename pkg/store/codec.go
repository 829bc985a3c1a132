package store

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxObjectBytes bounds the JSON of a stored API object, and thereby the memory of caches,
	// lists and watches. etcd's own limit applies to compressed bytes, and text compresses well.
	MaxObjectBytes = 1 << 20
	// oldObjectBytes is the limit of reads from before MaxObjectBytes existed. Writes then had no
	// limit.
	oldObjectBytes = 64 << 20
)

// objectFormat returns the storage format of API objects. There is no earlier version: a record
// that begins with a brace is plain JSON, as kube-apiserver writes it.
func objectFormat() Format {
	return Format{Kind: "object", Magic: "PKO", Version: 1, Limit: MaxObjectBytes, OldLimit: oldObjectBytes}
}

// Compressed returns a codec that compresses the output of another codec, and reads both compressed
// and plain records. Equal objects give equal bytes, so the API server recognises updates without
// changes.
//
// Records of revisions are repetitive text. Compressed, they take a third to a fifth of the space
// in the database, which etcd keeps in memory.
func Compressed(codec runtime.Codec) runtime.Codec {
	return compressed{Codec: codec, larger: &larger{bytes: map[types.UID]int{}}}
}

type compressed struct {
	runtime.Codec
	larger *larger
}

// UndecodableError reports an object whose encoding cannot be decoded. Kubernetes' types encode
// values that they cannot decode, such as a time before the year 0. Nothing was written.
type UndecodableError struct{ Err error }

func (e *UndecodableError) Error() string {
	return fmt.Sprintf("it could be written, and not be read again: %v", e.Err)
}

// Unwrap returns the decoding error.
func (e *UndecodableError) Unwrap() error { return e.Err }

// Encode implements runtime.Encoder. It decodes its result as a test, and returns an
// *UndecodableError if that fails: an unreadable record would block its extension or profile for
// ever, and writes are rare. An object of more than MaxObjectBytes is a *TooLargeError, unless it
// was stored before the limit existed and does not grow.
func (c compressed) Encode(object runtime.Object, w io.Writer) error {
	var plain bytes.Buffer
	if err := c.Codec.Encode(object, &plain); err != nil {
		return err
	}
	format := objectFormat()
	if plain.Len() > format.Limit {
		format.Limit = max(format.Limit, c.larger.allowed(object))
	}
	record, err := format.Seal(plain.Bytes())
	if err != nil {
		return err
	}
	if _, _, err := c.Codec.Decode(plain.Bytes(), nil, nil); err != nil {
		return &UndecodableError{Err: err}
	}
	_, err = w.Write(record)
	return err
}

// Identifier implements runtime.Encoder. It is the key of cached encodings.
func (c compressed) Identifier() runtime.Identifier {
	return "compressed " + c.Codec.Identifier()
}

// Decode implements runtime.Decoder.
func (c compressed) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	// The caller knows the key, and adds it to the error.
	plain, err := OpenObject("its key", data)
	if err != nil {
		return nil, nil, err
	}
	object, kind, err := c.Codec.Decode(plain, defaults, into)
	if err == nil && len(plain) > MaxObjectBytes {
		c.larger.note(object, len(plain))
	}
	return object, kind, err
}

// OpenObject returns the JSON of an API object that is stored at a key. The key is for errors: a
// *FormatError for a newer format, a *DamagedError for other bytes.
func OpenObject(key string, record []byte) ([]byte, error) {
	if bytes.HasPrefix(record, []byte("{")) {
		return record, nil
	}
	return objectFormat().Open(key, record)
}

// DamagedObject returns the error for an API object that is not JSON of its kind.
func DamagedObject(key string, err error) error { return objectFormat().Damaged(key, err) }

// larger records the objects above the limit that were stored before the limit existed. Users must
// be able to make them smaller or to delete them, and the library encodes an object unchanged
// before it changes it.
type larger struct {
	mu    sync.Mutex
	bytes map[types.UID]int
}

const (
	// maxLarger bounds the recorded objects.
	maxLarger = 10_000
	// deletionBytes is the size that a deletion, and a controller's message about it, may add.
	deletionBytes = 4 << 10
)

// note records the size of an object when it is first read.
func (l *larger) note(object runtime.Object, size int) {
	accessor, err := meta.Accessor(object)
	if err != nil || accessor.GetUID() == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.bytes[accessor.GetUID()]; !known && len(l.bytes) < maxLarger {
		l.bytes[accessor.GetUID()] = size
	}
}

// allowed returns the size that an object may have despite the limit. It returns 0 for an object
// that is not recorded. Records of the allowed size can be read.
func (l *larger) allowed(object runtime.Object) int {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	size, known := l.bytes[accessor.GetUID()]
	if !known {
		return 0
	}
	return min(size+deletionBytes, oldObjectBytes)
}
