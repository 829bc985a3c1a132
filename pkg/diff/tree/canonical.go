package tree

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/penstock-project/penstock/pkg/diff/schema"
)

// canonicalDepth is the largest depth of manifests that are read here.
const canonicalDepth = 256

// canonical builds the tree of a manifest from its canonical JSON (see package manifest), the form
// in which revisions are stored. It needs no maps of a decoder, which would be most of the cost of
// a comparison. The nodes equal the result of Comparer.build for the decoded manifest.
//
// canonical fails for input that is not canonical, such as duplicate keys or invalid UTF-8, and for
// values to hide. Such manifests are decoded instead.
type canonical struct {
	comparer *Comparer
	text     string
	at       int
	depth    int
	// keepsStatus is true if status is content.
	keepsStatus bool
	// fields and items are stacks of the unfinished objects and lists. The parts of an inner object
	// follow the parts of the outer one.
	fields []Field
	items  []*Node
	// kept is the number of entries of the last object, including nulls.
	kept int
	// The memory of the tree.
	newNodes  slab[Node]
	newFields slab[Field]
	newItems  slab[*Node]
}

// slab allocates many small values at once. All of them stay in memory as long as any of them is
// used.
type slab[T any] struct{ free []T }

func (s *slab[T]) take(n int) []T {
	const size = 128
	if n > size/4 {
		return make([]T, n)
	}
	if len(s.free) < n {
		s.free = make([]T, size)
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

// readCanonical builds the tree of an object, without fields that servers set. It returns false if
// it cannot read the object.
func (c *Comparer) readCanonical(json []byte, t schema.Type, keepsStatus bool) (*Node, bool) {
	r := &c.reader
	r.comparer, r.text, r.at, r.depth, r.keepsStatus = c, string(json), 0, 0, keepsStatus
	r.fields, r.items = r.fields[:0], r.items[:0]
	// A value that is hidden without a mask is a Secret inside the object. Canonical JSON has only
	// one spelling of its kind. (The search begins with a letter, because quotes are too frequent.)
	if strings.Contains(r.text, `Secret"`) && strings.Contains(r.text, `"kind":"Secret"`) || !r.next('{') {
		return nil, false
	}
	n, ok := r.object(t, place{}, inObject)
	return n, ok && r.at == len(r.text)
}

// section is a part of an object in which servers set fields.
type section uint8

const (
	elsewhere section = iota
	inObject
	inMetadata
	inLabels
	inAnnotations
)

func (s section) of(name string) section {
	switch {
	case s == inObject && name == "metadata":
		return inMetadata
	case s == inMetadata && name == "labels":
		return inLabels
	case s == inMetadata && name == "annotations":
		return inAnnotations
	}
	return elsewhere
}

// isServers reports whether servers set a field of a section.
func (s section) isServers(name string, keepsStatus bool) bool {
	switch s {
	case inObject:
		return name == "status" && !keepsStatus
	case inMetadata:
		return isServerMetadata(name)
	case inLabels, inAnnotations:
		return isServerEntry(name)
	default:
		return false
	}
}

func (r *canonical) next(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// value reads a value; nil for null.
func (r *canonical) value(t schema.Type, p place, s section) (*Node, bool) {
	if r.at == len(r.text) {
		return nil, false
	}
	switch c := r.text[r.at]; {
	case c == '{':
		r.at++
		return r.object(t, p, s)
	case c == '[':
		r.at++
		return r.list(t, p)
	case c == '"':
		r.at++
		text, ok := r.string()
		if !ok {
			return nil, false
		}
		n := r.node(Scalar, t)
		n.text, n.isText = text, true
		r.comparer.settleScalar(n, p)
		return n, true
	case c == 'n':
		return nil, r.word("null")
	default:
		value, ok := r.otherScalar()
		if !ok {
			return nil, false
		}
		n := r.node(Scalar, t)
		n.scalar = value
		r.comparer.settleScalar(n, p)
		return n, true
	}
}

func (r *canonical) node(kind Kind, t schema.Type) *Node {
	n := &r.newNodes.take(1)[0]
	n.kind, n.typ = kind, t
	return n
}

// descend increases the depth, and reports whether it is allowed.
func (r *canonical) descend() bool {
	r.depth++
	return r.depth <= canonicalDepth && !r.comparer.stop()
}

// object reads the rest of an object.
func (r *canonical) object(t schema.Type, p place, s section) (*Node, bool) {
	if !r.descend() {
		return nil, false
	}
	n := r.node(Object, t)
	start, kept, previous := len(r.fields), 0, ""
	for first := true; !first || !r.next('}'); first = false {
		if !r.next('"') {
			return nil, false
		}
		name, ok := r.string()
		if !ok || !first && name <= previous || !r.next(':') {
			return nil, false
		}
		previous = name
		var fieldType schema.Type
		if t != nil {
			fieldType = t.Field(name)
		}
		value, ok := r.value(fieldType, place{name: name, parent: p.name}, s.of(name))
		if !ok || s == inAnnotations && isCopyOfSecret(name, value) {
			return nil, false
		}
		if !s.isServers(name, r.keepsStatus) {
			kept++
			// Labels or annotations that only servers set are omitted.
			empty := s == inMetadata && s.of(name) != elsewhere && value != nil && value.kind == Object && r.kept == 0
			if value != nil && !empty {
				r.fields = append(r.fields, Field{name, value})
			}
		}
		if r.next('}') {
			break
		}
		if !r.next(',') {
			return nil, false
		}
	}
	n.fields = r.newFields.take(len(r.fields) - start)
	copy(n.fields, r.fields[start:])
	r.fields = r.fields[:start]
	r.kept = kept
	r.depth--
	r.comparer.settleObject(n)
	return n, true
}

// isCopyOfSecret reports whether an annotation must be hidden (see hideCopies).
func isCopyOfSecret(name string, value *Node) bool {
	return value != nil && value.isText && strings.Contains(value.text, "Secret") && carriesObject(name, value.text)
}

// list reads the rest of a list.
func (r *canonical) list(t schema.Type, p place) (*Node, bool) {
	if !r.descend() {
		return nil, false
	}
	n := r.node(List, t)
	var itemType schema.Type
	if t != nil {
		itemType = t.Item()
	}
	start := len(r.items)
	for first := true; !first || !r.next(']'); first = false {
		item, ok := r.value(itemType, p, elsewhere)
		if !ok {
			return nil, false
		}
		if item == nil {
			item = r.node(Scalar, itemType)
			r.comparer.settleScalar(item, p)
		}
		r.items = append(r.items, item)
		if r.next(']') {
			break
		}
		if !r.next(',') {
			return nil, false
		}
	}
	n.items = r.newItems.take(len(r.items) - start)
	copy(n.items, r.items[start:])
	r.items = r.items[:start]
	r.depth--
	r.comparer.settleList(n)
	return n, true
}

// string reads the rest of a string.
func (r *canonical) string() (string, bool) {
	start, ascii := r.at, true
	for i := start; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.at = i + 1
			s := r.text[start:i]
			return s, ascii || utf8.ValidString(s)
		case c == '\\':
			return r.escaped(start, i)
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// escaped reads a string whose first escape is at the given position. It fails for escapes that are
// not canonical.
func (r *canonical) escaped(start, first int) (string, bool) {
	decoded := append(make([]byte, 0, first-start+64), r.text[start:first]...)
	for i := first; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.at = i + 1
			return string(decoded), utf8.Valid(decoded)
		case c < ' ':
			return "", false
		case c != '\\':
			decoded = append(decoded, c)
		default:
			if i++; i == len(r.text) {
				return "", false
			}
			at := strings.IndexByte(`"\btnfr`, r.text[i])
			if at < 0 {
				// Escapes of other control characters are rare and not supported.
				return "", false
			}
			decoded = append(decoded, "\"\\\b\t\n\f\r"[at])
		}
	}
	return "", false
}

func (r *canonical) otherScalar() (any, bool) {
	switch r.text[r.at] {
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	}
	end := r.at
	for end < len(r.text) && strings.IndexByte("+-.0123456789e", r.text[end]) >= 0 {
		end++
	}
	number := r.text[r.at:end]
	r.at = end
	if value, err := strconv.ParseInt(number, 10, 64); err == nil {
		return value, strconv.FormatInt(value, 10) == number
	}
	value, err := strconv.ParseFloat(number, 64)
	return value, err == nil && isCanonicalFloat(number)
}

// isCanonicalFloat reports whether a parsed number has the spelling of JSON, with digits on both
// sides of the point.
func isCanonicalFloat(number string) bool {
	number = strings.TrimPrefix(number, "-")
	whole, _, _ := strings.Cut(number, "e")
	whole, fraction, hasPoint := strings.Cut(whole, ".")
	return whole != "" && whole[0] != '+' && (whole[0] != '0' || len(whole) == 1) && (!hasPoint || fraction != "")
}

func (r *canonical) word(word string) bool {
	if !strings.HasPrefix(r.text[r.at:], word) {
		return false
	}
	r.at += len(word)
	return true
}
