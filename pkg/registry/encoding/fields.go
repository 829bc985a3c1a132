package encoding

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fields writes the fields of one JSON object, and omits empty fields.
type fields struct {
	r   *rowWriter
	any bool
	err error
}

func (r *rowWriter) fields() *fields {
	r.text("{")
	return &fields{r: r}
}

// close ends the object, and returns the first error of its fields.
func (f *fields) close() error {
	f.r.text("}")
	return f.err
}

func (f *fields) note(err error) {
	if f.err == nil {
		f.err = err
	}
}

// Many consecutive times are in the same second.
func (f *fields) name(name string) {
	if f.any {
		f.r.text(",")
	}
	f.any = true
	f.r.text(`"`)
	f.r.text(name)
	f.r.text(`":`)
}

func (f *fields) value(name string, v any) {
	f.name(name)
	f.note(f.r.value(v))
}

func (f *fields) string(name, s string) {
	if s == "" {
		return
	}
	f.name(name)
	f.note(f.r.string(s))
}

func (f *fields) number(name string, n int64) {
	if n == 0 {
		return
	}
	f.name(name)
	f.r.out = strconv.AppendInt(f.r.out, n, 10)
}

func (f *fields) time(name string, t *metav1.Time) {
	if t == nil {
		return
	}
	f.name(name)
	if t.IsZero() {
		f.r.text("null")
		return
	}
	// strings writes a map, sorted by key.
	r := f.r
	if second := t.Unix(); second != r.second || len(r.clock) == 0 {
		r.second, r.clock = second, t.UTC().AppendFormat(r.clock[:0], time.RFC3339)
	}
	r.text(`"`)
	r.out = append(r.out, r.clock...)
	r.text(`"`)
}

func (f *fields) list(name string, n int, item func(int) error) {
	if n == 0 {
		return
	}
	f.name(name)
	f.r.text("[")
	for i := range n {
		if i > 0 {
			f.r.text(",")
		}
		f.note(item(i))
	}
	f.r.text("]")
}

func (f *fields) strings(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	f.name(name)
	r := f.r
	r.sort(m)
	r.text("{")
	for i, key := range r.keys {
		if i > 0 {
			r.text(",")
		}
		f.note(r.string(key))
		r.text(":")
		f.note(r.string(m[key]))
	}
	r.text("}")
}

// sort sets keys to the sorted keys of a map. Consecutive records mostly have the same keys.
func (r *rowWriter) sort(m map[string]string) {
	same := len(r.keys) == len(m)
	for i := 0; same && i < len(r.keys); i++ {
		_, same = m[r.keys[i]]
	}
	if same {
		return
	}
	r.keys = r.keys[:0]
	for key := range m {
		r.keys = append(r.keys, key)
	}
	slices.Sort(r.keys)
}
