// Package tree converts manifests to trees of typed values, and computes the changes from one tree
// to another. It is the algorithm of pkg/diff. It omits fields that a server sets, and hides secret
// values. It compares lists by their keys, as sets, or by equal and similar items.
//
// Only the packages of pkg/diff use it: render prints its results, and review describes them.
package tree

import (
	"fmt"
	"hash/maphash"
	"slices"

	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

// Comparer builds and compares nodes. The same Comparer must build all nodes that are compared with
// each other. It is not safe for concurrent use.
type Comparer struct {
	types    schema.Schema
	redactor *redact.Redactor
	stop     func() bool
	seed     maphash.Seed
	salt     [2]uint64
	reader   canonical
	fallback Node // for equalsDefault
}

// NewComparer returns a Comparer. A nil redactor hides only the content of Secrets. stop reports
// whether the time is over. Results after that are incomplete, and callers must discard them.
func NewComparer(types schema.Schema, redactor *redact.Redactor, stop func() bool) *Comparer {
	seed := maphash.MakeSeed()
	return &Comparer{
		types: schema.Layers(types), redactor: redactor, stop: stop,
		seed: seed, salt: [2]uint64{maphash.String(seed, "one"), maphash.String(seed, "other")},
	}
}

// Parse decodes a manifest, removes fields that servers set, and redacts the sensitive fields of
// its kind. It returns nil for a nil object. It fails if the manifest is no JSON object. The error
// may quote the manifest, so do not show it to users.
func (c *Comparer) Parse(object *manifest.Object) (*Node, error) {
	if object == nil {
		return nil, nil
	}
	t, mask := c.types.TypeOf(object.GroupVersionKind()), c.redactor.Mask(object.GroupKind())
	keepsStatus := !manifest.IsOfKubernetes(object.GroupVersionKind().Group)
	if object.IsSecret() {
		mask = append(slices.Clip(mask), redact.SecretMask()...)
	}
	if len(mask) == 0 {
		if n, ok := c.readCanonical(object.JSON, t, keepsStatus); ok {
			return n, nil
		}
	}
	return c.decode(object.JSON, t, mask, keepsStatus)
}

// decode builds the tree of a manifest in any spelling.
func (c *Comparer) decode(json []byte, t schema.Type, mask redact.Mask, keepsStatus bool) (*Node, error) {
	var decoded map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(json, &decoded); err != nil {
		return nil, err
	}
	if decoded == nil {
		return nil, fmt.Errorf("found null, want an object")
	}
	decoded = hideCopies(withoutServerFields(decoded, keepsStatus), len(mask) > 0)
	return c.build(decoded, t, place{mask: mask}), nil
}
