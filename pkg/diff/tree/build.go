package tree

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/redact"
)

// place is the position of a value in its object: the mask that hides it, and the names of its
// field and of the parent field.
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

// build returns the node of a decoded value. If the time is over, the tree is incomplete.
func (c *Comparer) build(value any, t schema.Type, p place) *Node {
	if c.stop() {
		return &Node{}
	}
	if object, ok := value.(map[string]any); ok && isSecret(object) {
		p.mask = append(slices.Clip(p.mask), redact.SecretMask()...)
		value = withTrueBytes(object)
	}
	if p.hides(value) {
		return c.buildHidden(value)
	}
	switch v := value.(type) {
	case map[string]any:
		return c.buildObject(v, t, p)
	case []any:
		return c.buildList(v, t, p)
	default:
		return c.buildScalar(v, t, p)
	}
}

func (c *Comparer) buildObject(object map[string]any, t schema.Type, p place) *Node {
	n := &Node{kind: Object, typ: t, raw: object, fields: make([]Field, 0, len(object))}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		if value == nil {
			continue
		}
		var fieldType schema.Type
		if t != nil {
			fieldType = t.Field(name)
		}
		n.fields = append(n.fields, Field{name, c.build(value, fieldType, p.field(name))})
	}
	c.settleObject(n)
	return n
}

func (c *Comparer) buildList(list []any, t schema.Type, p place) *Node {
	n := &Node{kind: List, typ: t, items: make([]*Node, 0, len(list))}
	var itemType schema.Type
	if t != nil {
		itemType = t.Item()
	}
	for _, value := range list {
		n.items = append(n.items, c.build(value, itemType, p.item()))
	}
	c.settleList(n)
	return n
}

func (c *Comparer) buildScalar(value any, t schema.Type, p place) *Node {
	n := &Node{kind: Scalar, typ: t}
	n.setScalar(value)
	c.settleScalar(n, p)
	return n
}

// looksLikeQuantity reports whether a value in an object of unknown type is a quantity: an amount
// of a resource, in a field named as in a pod.
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

// buildHidden keeps only a digest of the value.
func (c *Comparer) buildHidden(value any) *Node {
	n := &Node{kind: Hidden, digest: new([sha256.Size]byte)}
	switch v := value.(type) {
	case secretBytes:
		*n.digest = sha256.Sum256(append([]byte("bytes:"), v...))
	default:
		// Encoding a decoded value cannot fail. If it did, the value would equal only other
		// failures.
		encoded, _ := json.Marshal(value)
		*n.digest = sha256.Sum256(append([]byte("json:"), encoded...))
	}
	n.hash = binary.LittleEndian.Uint64(n.digest[:]) ^ uint64(Hidden)
	return n
}
