package schema

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// extraTypes are the needed types from modules other than k8s.io/api.
//
//go:embed extratypes.yaml
var extraTypes []byte

// NewBuiltin returns the types of Kubernetes, with those defaults of its API server that manifests
// often omit. It takes some tens of milliseconds, so callers should share the result. It is safe
// for concurrent use.
func NewBuiltin() (Schema, error) {
	kubernetes, err := Kubernetes()
	if err != nil {
		return nil, err
	}
	extra, err := typed.NewParser(typed.YAMLObject(extraTypes))
	if err != nil {
		return nil, fmt.Errorf("parsing the embedded types: %w", err)
	}
	return &builtin{schemas: []*smdschema.Schema{kubernetes, &extra.Schema}, defaults: builtinDefaults()}, nil
}

// Kubernetes returns the schema of client-go's apply configurations, which server-side apply uses
// to merge objects. client-go does not export it, so it is taken from a typed value. All calls
// return the same schema.
func Kubernetes() (*smdschema.Schema, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering core/v1: %w", err)
	}
	any, err := applyconfigurations.NewTypeConverter(scheme).ObjectToTyped(&corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
	})
	if err != nil {
		return nil, fmt.Errorf("reading the types of client-go: %w", err)
	}
	return any.Schema(), nil
}

type builtin struct {
	schemas  []*smdschema.Schema
	defaults defaults
	types    sync.Map
}

// TypeOf returns the type of a kind of Kubernetes, or nil.
func (b *builtin) TypeOf(kind schema.GroupVersionKind) Type {
	return b.named(NameOf(kind))
}

// NameOf returns the name of a kind's type in the schema of Kubernetes; empty for kinds outside
// Kubernetes. It is possible that the schema lacks the type.
func NameOf(kind schema.GroupVersionKind) string {
	parent := packageOf(kind.Group)
	if parent == "" {
		return ""
	}
	return parent + "." + kind.Version + "." + kind.Kind
}

func packageOf(group string) string {
	name, isKubernetes := strings.CutSuffix(group, ".k8s.io")
	switch {
	case group == "":
		return "io.k8s.api.core"
	case group == "apiextensions.k8s.io":
		return "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions"
	case group == "apiregistration.k8s.io":
		return "io.k8s.kube-aggregator.pkg.apis.apiregistration"
	case group == "rbac.authorization.k8s.io":
		return "io.k8s.api.rbac"
	case group == "flowcontrol.apiserver.k8s.io":
		return "io.k8s.api.flowcontrol"
	case group == "internal.apiserver.k8s.io":
		return "io.k8s.api.apiserverinternal"
	case strings.Contains(name, "."):
		return ""
	case isKubernetes || group == "apps" || group == "batch" || group == "autoscaling" || group == "policy" || group == "extensions":
		return "io.k8s.api." + name
	}
	return ""
}

func (b *builtin) named(name string) Type {
	if name == "" {
		return nil
	}
	if t, ok := b.types.Load(name); ok {
		return t.(Type)
	}
	for _, s := range b.schemas {
		if definition, ok := s.FindNamedType(name); ok {
			t := b.typeOf(s, name, definition.Atom)
			if t != nil {
				b.types.Store(name, t)
			}
			return t
		}
	}
	return nil
}

// typeOf returns nil for a value of any type.
func (b *builtin) typeOf(s *smdschema.Schema, name string, atom smdschema.Atom) Type {
	kinds := 0
	for _, is := range []bool{atom.Scalar != nil, atom.List != nil, atom.Map != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return nil
	}
	t := &builtinType{builtin: b, schema: s, name: name, atom: atom, shape: shapeOf(name, atom)}
	switch {
	case atom.List != nil:
		t.element = sync.OnceValue(func() Type { return b.resolve(s, atom.List.ElementType) })
	case atom.Map != nil:
		t.element = sync.OnceValue(func() Type { return b.resolve(s, atom.Map.ElementType) })
	}
	return t
}

func (b *builtin) resolve(s *smdschema.Schema, ref smdschema.TypeRef) Type {
	if ref.NamedType != nil && ref.ElementRelationship == nil {
		return b.named(*ref.NamedType)
	}
	atom, ok := s.Resolve(ref)
	if !ok {
		return nil
	}
	name := ""
	if ref.NamedType != nil {
		name = *ref.NamedType
	}
	return b.typeOf(s, name, atom)
}

// builtinType is a type of the schemas that server-side apply uses. Each position in a schema has
// one builtinType. fields and element are resolved on first use.
type builtinType struct {
	*builtin
	schema *smdschema.Schema
	name   string // empty for an unnamed type
	atom   smdschema.Atom
	shape  Shape
	// element returns the type of the items of a list, or of the values of a map; otherwise nil.
	element func() Type
	// fields are the types of declared fields, by name; nil for fields of any type.
	fields sync.Map
}

// Shape implements Type.
func (t *builtinType) Shape() Shape { return t.shape }

// shapeOf returns the shape of a type. Kubernetes stores its own types in protobuf, which does not
// distinguish empty lists and maps from absent ones.
func shapeOf(name string, atom smdschema.Atom) Shape {
	shape := Shape{Quantity: name == "io.k8s.apimachinery.pkg.api.resource.Quantity"}
	if atom.Map != nil {
		// Structs have names; an unnamed type is a map.
		shape.EmptyIsAbsent = name == ""
	}
	if atom.List == nil {
		return shape
	}
	shape.EmptyIsAbsent = true
	switch {
	case atom.List.ElementRelationship == smdschema.Atomic:
		shape.List = ListAtomic
	case len(atom.List.Keys) > 0:
		shape.List, shape.Keys = ListMap, atom.List.Keys
	case atom.List.ElementRelationship == smdschema.Associative:
		shape.List = ListSet
	}
	return shape
}

// Field returns the type of a field, or of the values of a map.
func (t *builtinType) Field(name string) Type {
	if t.atom.Map == nil {
		return nil
	}
	field, ok := t.atom.Map.FindField(name)
	if !ok {
		return t.element()
	}
	if known, ok := t.fields.Load(name); ok {
		return known.(resolved).Type
	}
	found := resolved{t.resolve(t.schema, field.Type)}
	t.fields.Store(name, found)
	return found.Type
}

type resolved struct{ Type }

// Item returns the type of the items of a list.
func (t *builtinType) Item() Type {
	if t.atom.List == nil {
		return nil
	}
	return t.element()
}

// Default returns the value that the API server sets for an absent field.
func (t *builtinType) Default(field string, parent Parent) (any, bool) {
	if value, ok := t.defaults[t.name][field]; ok {
		if compute, ok := value.(computed); ok {
			return compute(parent)
		}
		return value, true
	}
	if t.atom.Map == nil {
		return nil, false
	}
	if declared, ok := t.atom.Map.FindField(field); ok && declared.Default != nil {
		return asJSON(declared.Default)
	}
	return nil, false
}

// asJSON converts a default from the form of a YAML parser to the form of a JSON decoder. Of
// objects, only empty ones are declared.
func asJSON(value any) (any, bool) {
	switch v := value.(type) {
	case int:
		return int64(v), true
	case map[string]any, map[any]any:
		return map[string]any{}, true
	case string, bool, int64, float64:
		return v, true
	}
	return nil, false
}
