package encoding

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rowWriter writes the same JSON as encoding/json. It writes the common parts of rows itself, which
// is several times faster, and uses encoding/json for the rest.
type rowWriter struct {
	w       io.Writer
	out     []byte
	started bool
	// keys are the sorted keys of the last written map.
	keys []string
	// second is the last written time, in seconds since 1970. clock is its text.
	second int64
	clock  []byte
	// plain remembers up to fewPlain sets that encoding/json would not change. fieldSet writes them
	// again without a check.
	plain []*metav1.FieldsV1
	// encoder writes into encoded.
	encoded bytes.Buffer
	encoder *json.Encoder
}

func newRowWriter() *rowWriter {
	r := &rowWriter{}
	r.encoder = json.NewEncoder(&r.encoded)
	return r
}

func (r *rowWriter) reset(w io.Writer) {
	r.w, r.out, r.started = w, r.out[:0], false
	clear(r.keys)
	clear(r.plain)
	r.keys, r.plain = r.keys[:0], r.plain[:0]
}

// open opens the array at the end of a value. The array must be null.
func (r *rowWriter) open() bool {
	head, ok := bytes.CutSuffix(r.out, []byte("null}"))
	r.out = append(head, '[')
	return ok
}

// flush writes the buffer if it has enough bytes. It writes the first byte in a separate call. By
// that, the library recognises streaming handlers, and compresses large answers (responsewriters,
// firstWriteStreamingThresholdBytes).
func (r *rowWriter) flush(enough int) error {
	if len(r.out) < enough {
		return nil
	}
	rest := r.out
	if !r.started {
		r.started = true
		if _, err := r.w.Write(rest[:1]); err != nil {
			return err
		}
		rest = rest[1:]
	}
	_, err := r.w.Write(rest)
	r.out = r.out[:0]
	return err
}

func (r *rowWriter) text(s string) { r.out = append(r.out, s...) }

// value writes a value with encoding/json.
func (r *rowWriter) value(v any) error {
	r.encoded.Reset()
	if err := r.encoder.Encode(v); err != nil {
		return err
	}
	r.out = append(r.out, bytes.TrimSuffix(r.encoded.Bytes(), []byte("\n"))...)
	return nil
}

// These classes order the bytes of a string by the work to write them.
const (
	asItIs = iota
	escaped
	// elsewhere marks bytes that only encoding/json can write.
	elsewhere
)

// bytesOf holds the class of each byte.
var bytesOf = func() (classes [256]byte) {
	for c := range classes {
		switch {
		case c < ' ' || c > '~', c == '<', c == '>', c == '&':
			classes[c] = elsewhere
		case c == '"', c == '\\':
			classes[c] = escaped
		}
	}
	return classes
}()

func (r *rowWriter) string(s string) error {
	most := byte(asItIs)
	for i := range len(s) {
		most = max(most, bytesOf[s[i]])
	}
	if most == elsewhere {
		return r.value(s)
	}
	r.text(`"`)
	for most == escaped {
		at := strings.IndexAny(s, `"\`)
		if at < 0 {
			break
		}
		r.text(s[:at])
		r.out = append(r.out, '\\', s[at])
		s = s[at+1:]
	}
	r.text(s)
	r.text(`"`)
	return nil
}

func (r *rowWriter) row(row *metav1.TableRow) error {
	object, ok := row.Object.Object.(*metav1.PartialObjectMetadata)
	if !ok || row.Object.Raw != nil || len(row.Conditions) > 0 || row.Cells == nil {
		return r.value(row)
	}
	r.text(`{"cells":[`)
	for i, cell := range row.Cells {
		if i > 0 {
			r.text(",")
		}
		if err := r.cell(cell); err != nil {
			return err
		}
	}
	r.text(`],"object":`)
	if err := r.object(object); err != nil {
		return err
	}
	r.text("}")
	return nil
}

func (r *rowWriter) cell(cell any) error {
	switch cell := cell.(type) {
	case string:
		return r.string(cell)
	case int64:
		r.out = strconv.AppendInt(r.out, cell, 10)
		return nil
	default:
		return r.value(cell)
	}
}

func (r *rowWriter) object(object *metav1.PartialObjectMetadata) error {
	if object == nil {
		r.text("null")
		return nil
	}
	f := r.fields()
	f.string("kind", object.Kind)
	f.string("apiVersion", object.APIVersion)
	f.name("metadata")
	f.note(r.meta(&object.ObjectMeta))
	return f.close()
}

// meta writes the fields of metadata in the order in which the type has them.
func (r *rowWriter) meta(m *metav1.ObjectMeta) error {
	f := r.fields()
	f.string("name", m.Name)
	f.string("generateName", m.GenerateName)
	f.string("namespace", m.Namespace)
	f.string("selfLink", m.GetSelfLink())
	f.string("uid", string(m.UID))
	f.string("resourceVersion", m.ResourceVersion)
	f.number("generation", m.Generation)
	if !m.CreationTimestamp.IsZero() {
		f.time("creationTimestamp", &m.CreationTimestamp)
	}
	f.time("deletionTimestamp", m.DeletionTimestamp)
	if m.DeletionGracePeriodSeconds != nil {
		f.value("deletionGracePeriodSeconds", m.DeletionGracePeriodSeconds)
	}
	f.strings("labels", m.Labels)
	f.strings("annotations", m.Annotations)
	if len(m.OwnerReferences) > 0 {
		f.value("ownerReferences", m.OwnerReferences)
	}
	f.list("finalizers", len(m.Finalizers), func(i int) error { return r.string(m.Finalizers[i]) })
	f.list("managedFields", len(m.ManagedFields), func(i int) error { return r.manager(&m.ManagedFields[i]) })
	return f.close()
}

// manager writes an entry of managedFields.
func (r *rowWriter) manager(m *metav1.ManagedFieldsEntry) error {
	f := r.fields()
	f.string("manager", m.Manager)
	f.string("operation", string(m.Operation))
	f.string("apiVersion", m.APIVersion)
	f.time("time", m.Time)
	f.string("fieldsType", m.FieldsType)
	if m.FieldsV1 != nil {
		f.name("fieldsV1")
		f.note(r.fieldSet(m.FieldsV1))
	}
	f.string("subresource", m.Subresource)
	return f.close()
}

// fewPlain bounds the remembered sets of fields. Clients that send records of the same form have
// the same few sets (see package sharing).
const fewPlain = 4

// fieldSet writes a set of fields. The set is already JSON and is not parsed again. encoding/json
// writes a set that it would change.
func (r *rowWriter) fieldSet(set *metav1.FieldsV1) error {
	raw := set.GetRawBytes()
	if !slices.Contains(r.plain, set) {
		if len(raw) == 0 || raw[0] != '{' {
			return r.value(set)
		}
		for _, c := range raw {
			if c == ' ' || bytesOf[c] == elsewhere {
				return r.value(set)
			}
		}
		if len(r.plain) < fewPlain {
			r.plain = append(r.plain, set)
		}
	}
	r.out = append(r.out, raw...)
	return nil
}
