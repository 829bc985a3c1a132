package diff

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/redact"
)

// node is one value of a manifest together with what decides whether it equals
// another: its type, a hash, and which of its fields say no more than their
// absence would.
//
// What is redacted has no value in its node, only a digest of it. All
// output is made of nodes, so nothing can print what is hidden.
type node struct {
	kind   nodeKind
	scalar any         // of a scalar, as decoded
	amount string      // of a quantity, in its common spelling
	fields []fieldNode // of an object, sorted by name, none is null
	items  []*node     // of a list
	digest [sha256.Size]byte

	typ schema.Type
	// raw is the decoded object, for defaults that depend on other fields. It
	// is never printed.
	raw map[string]any
	// implied tells that an API server would fill in this value itself.
	implied bool
	// hash leaves out implied fields and the order of sets.
	hash uint64
}

type nodeKind uint8

const (
	scalarNode nodeKind = iota
	objectNode
	listNode
	hiddenNode
)

type fieldNode struct {
	name string
	*node
}

func (n *node) shape() schema.Shape {
	if n == nil || n.typ == nil {
		return schema.Shape{}
	}
	return n.typ.Shape()
}

// field returns a field of an object, or nil. It may be asked of nil.
func (n *node) field(name string) *node {
	if n == nil || n.kind != objectNode {
		return nil
	}
	i, found := slices.BinarySearchFunc(n.fields, name, func(f fieldNode, name string) int {
		switch {
		case f.name < name:
			return -1
		case f.name > name:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return n.fields[i].node
}

// at follows field names down.
func (n *node) at(names ...string) *node {
	for _, name := range names {
		n = n.field(name)
	}
	return n
}

// list returns the items of a list, none when it is something else.
func (n *node) list() []*node {
	if n == nil || n.kind != listNode {
		return nil
	}
	return n.items
}

// str returns a string, empty when it is something else.
func (n *node) str() string {
	if n == nil || n.kind != scalarNode {
		return ""
	}
	s, _ := n.scalar.(string)
	return s
}

// isTrue tells whether a value is the boolean true.
func (n *node) isTrue() bool {
	return n != nil && n.kind == scalarNode && n.scalar == true
}

// isEmpty tells whether a list or an object has nothing in it.
func (n *node) isEmpty() bool {
	return n.kind == objectNode && len(n.fields) == 0 || n.kind == listNode && len(n.items) == 0
}

// builder makes nodes of decoded JSON. One builder makes all nodes that are
// compared with each other.
type builder struct {
	seed maphash.Seed
	// stop tells that time ran out; what is built after it is worthless.
	stop func() bool
}

// place is where in an object a value is, as far as it matters: what hides it,
// and the names of the last two fields above.
type place struct {
	mask         redact.Mask
	name, parent string
}

func (p place) field(name string) place {
	return place{mask: p.mask.Field(name), name: name, parent: p.name}
}

func (p place) item() place {
	return place{mask: p.mask.Item(), name: p.name, parent: p.parent}
}

func (b *builder) build(value any, t schema.Type, p place) *node {
	if b.stop() {
		return &node{}
	}
	if object, ok := value.(map[string]any); ok && isSecret(object) {
		p.mask = append(slices.Clip(p.mask), redact.SecretMask()...)
		value = concealSecret(object)
	}
	if p.hides(value) {
		return b.hidden(value)
	}
	switch v := value.(type) {
	case map[string]any:
		return b.object(v, t, p)
	case []any:
		return b.list(v, t, p)
	default:
		return b.scalar(v, t, p)
	}
}

func (b *builder) object(object map[string]any, t schema.Type, p place) *node {
	n := &node{kind: objectNode, typ: t, raw: object, fields: make([]fieldNode, 0, len(object))}
	var h maphash.Hash
	h.SetSeed(b.seed)
	h.WriteByte(byte(objectNode))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		if value == nil {
			continue
		}
		var childType schema.Type
		if t != nil {
			childType = t.Field(name)
		}
		child := b.build(value, childType, p.field(name))
		n.fields = append(n.fields, fieldNode{name, child})
		if child.implied = b.impliedBy(n, name, child); child.implied {
			continue
		}
		h.WriteString(name)
		h.WriteByte(0)
		writeUint64(&h, child.hash)
	}
	n.hash = h.Sum64()
	return n
}

// impliedBy tells whether parent without the field means the same as with it,
// having this value.
func (b *builder) impliedBy(parent *node, name string, value *node) bool {
	if value.kind == hiddenNode {
		return false
	}
	if value.isEmpty() && value.shape().EmptyIsAbsent {
		return true
	}
	if parent.typ == nil {
		return false
	}
	fallback, ok := parent.typ.Default(name, parent.raw)
	if !ok {
		return false
	}
	return same(value, b.build(fallback, value.typ, place{}))
}

func (b *builder) list(list []any, t schema.Type, p place) *node {
	n := &node{kind: listNode, typ: t, items: make([]*node, 0, len(list))}
	var itemType schema.Type
	if t != nil {
		itemType = t.Item()
	}
	unordered := n.shape().List == schema.ListSet
	var h maphash.Hash
	h.SetSeed(b.seed)
	h.WriteByte(byte(listNode))
	var sum uint64
	for _, value := range list {
		child := b.build(value, itemType, p.item())
		n.items = append(n.items, child)
		if unordered {
			sum += child.hash
		} else {
			writeUint64(&h, child.hash)
		}
	}
	writeUint64(&h, sum)
	n.hash = h.Sum64()
	return n
}

func (b *builder) scalar(value any, t schema.Type, p place) *node {
	n := &node{kind: scalarNode, typ: t, scalar: value}
	if n.shape().Quantity || t == nil && p.looksLikeQuantity() {
		n.amount, _ = quantity(value)
	}
	var h maphash.Hash
	h.SetSeed(b.seed)
	h.WriteByte(byte(scalarNode))
	switch v := identity(n).(type) {
	case string:
		h.WriteByte('s')
		h.WriteString(v)
	case amount:
		h.WriteByte('q')
		h.WriteString(string(v))
	case int64:
		h.WriteByte('i')
		writeUint64(&h, uint64(v))
	case float64:
		h.WriteByte('f')
		writeUint64(&h, math.Float64bits(v))
	case bool:
		h.WriteByte('b')
		if v {
			h.WriteByte(1)
		}
	}
	n.hash = h.Sum64()
	return n
}

// looksLikeQuantity is for objects of unknown type: an amount of a resource, in
// an object that is called as in a pod.
func (p place) looksLikeQuantity() bool {
	if p.parent != "requests" && p.parent != "limits" {
		return false
	}
	switch p.name {
	case "cpu", "memory", "storage", "ephemeral-storage":
		return true
	}
	// Huge pages, and extended resources such as example.com/gpu.
	return strings.HasPrefix(p.name, "hugepages-") || strings.Contains(p.name, "/")
}

// hidden keeps a digest of the true bytes and nothing else.
func (b *builder) hidden(value any) *node {
	n := &node{kind: hiddenNode}
	switch v := value.(type) {
	case secretBytes:
		n.digest = sha256.Sum256(append([]byte("bytes:"), v...))
	default:
		// A decoded value cannot fail to be encoded; if it did, it would equal
		// nothing but its like.
		encoded, _ := json.Marshal(value)
		n.digest = sha256.Sum256(append([]byte("json:"), encoded...))
	}
	n.hash = binary.LittleEndian.Uint64(n.digest[:]) ^ uint64(hiddenNode)
	return n
}

func writeUint64(h *maphash.Hash, v uint64) {
	var buffer [8]byte
	binary.LittleEndian.PutUint64(buffer[:], v)
	h.Write(buffer[:])
}
