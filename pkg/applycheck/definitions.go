package applycheck

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Definitions are the types that the CustomResourceDefinitions among some objects declare. The
// first request for the type of a kind parses its definition. It is not safe for concurrent use.
type Definitions struct {
	builtin *BuiltinTypes
	unread  map[string][]*manifest.Object // by group
	read    map[runtimeschema.GroupVersionKind]apiextensionsv1.CustomResourceDefinitionVersion
	known   map[runtimeschema.GroupVersionKind]*Type
	defined map[runtimeschema.GroupKind]bool
}

// NewDefinitions returns the types that CustomResourceDefinitions among objects declare.
func NewDefinitions(builtin *BuiltinTypes, objects []manifest.Object) *Definitions {
	d := &Definitions{
		builtin: builtin, unread: map[string][]*manifest.Object{},
		read:  map[runtimeschema.GroupVersionKind]apiextensionsv1.CustomResourceDefinitionVersion{},
		known: map[runtimeschema.GroupVersionKind]*Type{}, defined: map[runtimeschema.GroupKind]bool{},
	}
	for i := range objects {
		if !objects[i].IsDefinition() || objects[i].Version != "v1" {
			continue
		}
		// An API server requires the name <plural>.<group>.
		if _, group, ok := strings.Cut(objects[i].Name, "."); ok {
			d.unread[group] = append(d.unread[group], &objects[i])
		}
	}
	return d
}

// TypeOf implements Types. It returns nil for an invalid definition; the API server reports the error
// when it is applied.
func (d *Definitions) TypeOf(kind runtimeschema.GroupVersionKind) *Type {
	for _, object := range d.unread[kind.Group] {
		d.readDefinition(object)
	}
	delete(d.unread, kind.Group)
	if t, compiled := d.known[kind]; compiled {
		return t
	}
	version, found := d.read[kind]
	if !found {
		return nil
	}
	t, err := d.builtin.declared(version)
	if err != nil {
		t = nil
	}
	d.known[kind] = t
	return t
}

// Defines reports whether one of the objects defines a kind, in any version. It knows only
// definitions that TypeOf has parsed, so call TypeOf for the kind first.
func (d *Definitions) Defines(kind runtimeschema.GroupKind) bool { return d.defined[kind] }

func (d *Definitions) readDefinition(object *manifest.Object) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object.JSON, &definition); err != nil {
		return
	}
	spec := &definition.Spec
	d.defined[runtimeschema.GroupKind{Group: spec.Group, Kind: spec.Names.Kind}] = true
	if spec.PreserveUnknownFields {
		return // it accepts any object
	}
	for _, version := range spec.Versions {
		d.read[runtimeschema.GroupVersionKind{Group: spec.Group, Version: version.Name, Kind: spec.Names.Kind}] = version
	}
}

// declared returns the type of one version of a definition, built as kube-apiserver does
// (buildOpenAPIModelsForApply of apiextensions-apiserver).
func (b *BuiltinTypes) declared(version apiextensionsv1.CustomResourceDefinitionVersion) (*Type, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, errors.New("it has no schema")
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	if problems := schema.ValidateStructural(nil, structural); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	const name = "CustomResource"
	root := structural.Unfold().ToKubeOpenAPI()
	addObjectFields(root)
	addEmbedded(root)
	converted, err := schemaconv.ToSchemaFromOpenAPI(map[string]*spec.Schema{name: root}, false)
	if err != nil {
		return nil, fmt.Errorf("converting the schema: %w", err)
	}
	types := &smdschema.Schema{Types: converted.Types}
	t := named(types, name)
	t.metadata = b.metadata
	t.hasStatus = version.Subresources != nil && version.Subresources.Status != nil
	return t, nil
}

// addObjectFields declares the fields of every object. Metadata is checked separately.
func addObjectFields(s *spec.Schema) {
	text := *spec.StringProperty()
	s.SetProperty("apiVersion", text)
	s.SetProperty("kind", text)
	open := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	open.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	s.SetProperty("metadata", open)
}

// addEmbedded declares the fields of every object in embedded objects.
func addEmbedded(s *spec.Schema) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		addEmbedded(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		addEmbedded(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		addEmbedded(s.AdditionalProperties.Schema)
	}
	if embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded {
		addObjectFields(s)
	}
}
