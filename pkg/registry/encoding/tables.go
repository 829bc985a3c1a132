package encoding

import (
	"io"
	"sync"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const chunkBytes = 32 << 10

// StreamTables makes this process write tables, and lists of metadata, row by row. The bytes are
// the same as without it.
//
// The library encodes each row twice: first as a value that encodes itself, then to check the
// result. It also holds the whole answer until the last row. These are two thirds of the cost of a
// table with thousands of rows. The library streams lists but not tables, and only with the codecs
// of an API group. Its codecs for tables cannot be chosen (handlers/response.go,
// targetEncodingForTransform), so StreamTables replaces the serializer in them.
//
// Call it once, before the server starts.
func StreamTables() {
	streamTables(metainternalversionscheme.Codecs.SupportedMediaTypes())
}

// streamTables replaces the JSON serializers that all users of the codecs share. It keeps the
// pretty-printing serializers.
func streamTables(shared []runtime.SerializerInfo) {
	for i := range shared {
		if shared[i].MediaType == runtime.ContentTypeJSON {
			shared[i].Serializer = newRowSerializer(shared[i].Serializer)
		}
	}
}

// rowSerializer is a JSON serializer that writes the rows of tables and of metadata lists one by
// one.
type rowSerializer struct {
	runtime.Serializer
	// writers are reused. Even a large answer takes only the memory of one chunk.
	writers *sync.Pool
}

func newRowSerializer(stock runtime.Serializer) rowSerializer {
	return rowSerializer{Serializer: stock, writers: &sync.Pool{New: func() any { return newRowWriter() }}}
}

// Encode implements runtime.Encoder.
func (s rowSerializer) Encode(obj runtime.Object, w io.Writer) error {
	switch obj := obj.(type) {
	case *metav1.Table:
		head := *obj
		head.Rows = nil
		return encodeRows(s, w, obj, &head, obj.Rows, (*rowWriter).row)
	case *metav1.PartialObjectMetadataList:
		head := *obj
		head.Items = nil
		return encodeRows(s, w, obj, &head, obj.Items, (*rowWriter).object)
	default:
		return s.Serializer.Encode(obj, w)
	}
}

// encodeRows writes an object that ends with rows. head is the object without its rows.
func encodeRows[R any](s rowSerializer, w io.Writer, obj, head runtime.Object, rows []R, row func(*rowWriter, *R) error) error {
	if len(rows) == 0 {
		return s.Serializer.Encode(obj, w)
	}
	r := s.writers.Get().(*rowWriter)
	defer s.writers.Put(r)
	r.reset(w)
	// The pooled writer must not keep its last user in memory.
	defer r.reset(nil)
	if err := r.value(head); err != nil {
		return err
	}
	if !r.open() {
		return s.Serializer.Encode(obj, w)
	}
	for i := range rows {
		if i > 0 {
			r.text(",")
		}
		if err := row(r, &rows[i]); err != nil {
			return err
		}
		if err := r.flush(chunkBytes); err != nil {
			return err
		}
	}
	r.text("]}\n")
	return r.flush(0)
}
