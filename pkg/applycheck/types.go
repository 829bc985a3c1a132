package applycheck

import (
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Types returns the types of kinds.
type Types interface {
	// TypeOf returns the type of a kind, or nil.
	TypeOf(kind runtimeschema.GroupVersionKind) *Type
}

// Type is the type of a kind in server-side apply. It is safe for concurrent use.
type Type struct {
	schema *smdschema.Schema
	ref    smdschema.TypeRef
	// metadata is the type of metadata in Kubernetes, if the type itself accepts any metadata.
	metadata *Type
	// hasStatus is true for a kind with the status subresource: the API server ignores its field
	// status.
	hasStatus bool
	// values decodes objects of the kind; nil if they are not decoded.
	values *decoder
}

// Check returns the errors that server-side apply would report for an object. It does not change the
// object.
func (t *Type) Check(object *manifest.Object) (Findings, error) {
	decoded, err := Decode(object.JSON)
	if err != nil {
		return Findings{}, fmt.Errorf("reading the manifest of %s: %w", object.ID, err)
	}
	if t.hasStatus {
		delete(decoded, "status")
	}
	findings := t.walk(decoded, nil)
	if len(findings.List) == 0 && t.values != nil {
		t.values.check(object, &findings)
	}
	return findings, nil
}

func (t *Type) walk(object map[string]any, duplicates func(list Path, element string, first, index int)) Findings {
	var findings Findings
	if t.schema != nil {
		w := &walk{schema: t.schema, findings: &findings, duplicates: duplicates}
		w.value(t.ref, object)
	}
	if t.metadata != nil {
		w := &walk{schema: t.metadata.schema, findings: &findings, path: Path{{Field: "metadata"}}}
		w.value(t.metadata.ref, object["metadata"])
	}
	return findings
}

// BuiltinTypes are the types of Kubernetes, in the version of the libraries of this program. They are
// safe for concurrent use.
type BuiltinTypes struct {
	kubernetes, extensions *smdschema.Schema
	metadata               *Type
	decoders               *decoders
}

// Builtin returns the types of Kubernetes. The first call takes some tens of milliseconds. Package
// schema shares the types.
func Builtin() (*BuiltinTypes, error) {
	kubernetes, err := schema.Kubernetes()
	if err != nil {
		return nil, err
	}
	extensions, err := extensionTypes()
	if err != nil {
		return nil, err
	}
	decoders, err := newDecoders()
	if err != nil {
		return nil, err
	}
	return &BuiltinTypes{kubernetes: kubernetes, extensions: extensions, decoders: decoders, metadata: named(kubernetes, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")}, nil
}

// TypeOf implements Types.
func (b *BuiltinTypes) TypeOf(kind runtimeschema.GroupVersionKind) *Type {
	name := schema.NameOf(kind)
	if t := named(b.kubernetes, name); t != nil {
		t.values = b.decoders.of(kind)
		return t
	}
	// These objects are not decoded: their schemas are large, and decoding would take longer than
	// all other checks.
	return named(b.extensions, name)
}

func named(types *smdschema.Schema, name string) *Type {
	if _, found := types.FindNamedType(name); !found {
		return nil
	}
	return &Type{schema: types, ref: smdschema.TypeRef{NamedType: &name}}
}
