package store

import (
	"bytes"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	return compressed{Codec: codec}
}

type compressed struct{ runtime.Codec }

// Encode implements runtime.Encoder. An object of more than MaxObjectBytes is a
// *TooLargeError.
func (c compressed) Encode(object runtime.Object, w io.Writer) error {
	var plain bytes.Buffer
	if err := c.Codec.Encode(object, &plain); err != nil {
		return err
	}
	record, err := objectFormat().Seal(plain.Bytes())
	if err != nil {
		return err
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
	if bytes.HasPrefix(data, []byte("{")) {
		return c.Codec.Decode(data, defaults, into)
	}
	// Whoever asked knows the key, and says it with the error.
	plain, err := objectFormat().Open("its key", data)
	if err != nil {
		return nil, nil, err
	}
	return c.Codec.Decode(plain, defaults, into)
}
