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
	// MaxObjectBytes is how many bytes of JSON an object of the API may have to be
	// stored. It bounds the memory of every cache, list and watch, which etcd's own
	// limit does not: that is for what is compressed, and text compresses well.
	MaxObjectBytes = 1 << 20
	// oldObjectBytes were read, and any number written, before there was a limit.
	oldObjectBytes = 64 << 20
)

// objectFormat is how objects of the API are stored. There is none before it: what
// begins with a brace is an object as JSON, as kube-apiserver would have it.
func objectFormat() Format {
	return Format{Kind: "object", Magic: "PKO", Version: 1, Limit: MaxObjectBytes, OldLimit: oldObjectBytes}
}

// Compressed returns a codec that writes compressed what another one encodes, and
// reads that as well as what the other one wrote. The same object gives the same
// bytes, by which the API server recognises updates that change nothing.
//
// Records of revisions are text that repeats itself. Compressed they take a third
// to a fifth of the database, which etcd has in memory as a whole.
func Compressed(codec runtime.Codec) runtime.Codec {
	return compressed{Codec: codec, larger: &larger{bytes: map[types.UID]int{}}}
}

type compressed struct {
	runtime.Codec
	larger *larger
}

// UndecodableError says that an object would be written as what nobody can read: the
// types of Kubernetes write more than they read, such as a time before the year 0.
// Nothing was written.
type UndecodableError struct{ Err error }

func (e *UndecodableError) Error() string {
	return fmt.Sprintf("it could be written, and not be read again: %v", e.Err)
}

// Unwrap returns why it cannot be read.
func (e *UndecodableError) Unwrap() error { return e.Err }

// Encode implements runtime.Encoder. Decode decodes everything that it encodes; anything else is an
// *UndecodableError, and it finds out by decoding. Writes are rare, and a record that
// cannot be read holds its extension or profile for ever. An object of more than
// MaxObjectBytes is a *TooLargeError, unless it was stored so before there was a limit,
// and does not grow.
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

// Identifier implements runtime.Encoder: encodings are cached by it.
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

// OpenObject returns the JSON of an object of the API that is stored at a key. The key is
// for errors: a *FormatError for a newer format, a *DamagedError for other bytes.
func OpenObject(key string, record []byte) ([]byte, error) {
	if bytes.HasPrefix(record, []byte("{")) {
		return record, nil
	}
	return objectFormat().Open(key, record)
}

// DamagedObject is the error for an object of the API that is no JSON of its kind.
func DamagedObject(key string, err error) error { return objectFormat().Damaged(key, err) }

// larger remembers the objects that were stored before there was a limit, beyond it.
// The library encodes an object as it is before it changes it; and a person must be
// able to make it smaller, or to delete it.
type larger struct {
	mu    sync.Mutex
	bytes map[types.UID]int
}

const (
	// maxLarger is how many are remembered.
	maxLarger = 10_000
	// deletionBytes is the size that a deletion, and a controller's message about it, may add.
	deletionBytes = 4 << 10
)

// note remembers how large an object was when it was first read.
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

// allowed is how large an object may be for that, 0 for one that was not beyond the
// limit. Allowed records can be read.
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
