package diff

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewOpenAPI returns the types that OpenAPI v3 documents of an API server
// describe, as it serves them at /openapi/v3/apis/<group>/<version>.
func NewOpenAPI(documents ...[]byte) (Schema, error) {
	kinds := make(openAPIKinds)
	for i, content := range documents {
		var document struct {
			Components struct {
				Schemas map[string]map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(content, &document); err != nil {
			return nil, fmt.Errorf("reading OpenAPI document %d: %w", i, err)
		}
		for _, definition := range document.Components.Schemas {
			for _, kind := range kindsOf(definition) {
				kinds[kind] = &jsonType{schema: definition, definitions: document.Components.Schemas}
			}
		}
	}
	return kinds, nil
}

type openAPIKinds map[schema.GroupVersionKind]*jsonType

// TypeOf returns the type of a kind that one of the documents describes, or nil.
func (k openAPIKinds) TypeOf(kind schema.GroupVersionKind) Type {
	if t, ok := k[kind]; ok {
		return t
	}
	return nil
}

func kindsOf(definition map[string]any) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	list, _ := definition["x-kubernetes-group-version-kind"].([]any)
	for _, entry := range list {
		names, _ := entry.(map[string]any)
		group, _ := names["group"].(string)
		version, _ := names["version"].(string)
		kind, _ := names["kind"].(string)
		kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	}
	return kinds
}

// jsonType is a type that a JSON schema describes: one of an OpenAPI document,
// or a structural one of a CustomResourceDefinition.
type jsonType struct {
	schema map[string]any
	// definitions are what $ref points into; a structural schema has none.
	definitions map[string]map[string]any
	quantity    bool
}

const refPrefix = "#/components/schemas/"

// newJSONType returns the type of a schema, following references. OpenAPI v3
// wraps one in allOf to put a default beside it. A nil schema is no type.
func newJSONType(definition any, definitions map[string]map[string]any) Type {
	s, ok := definition.(map[string]any)
	if !ok {
		return nil
	}
	t := &jsonType{schema: s, definitions: definitions}
	// References do not lead in circles but through properties; what does is
	// not a schema.
	const longest = 16
	for range longest {
		if all, ok := t.schema["allOf"].([]any); ok && len(all) == 1 {
			if only, ok := all[0].(map[string]any); ok && t.schema["properties"] == nil {
				t.schema = only
				continue
			}
		}
		ref, ok := t.schema["$ref"].(string)
		if !ok {
			return t
		}
		name := strings.TrimPrefix(ref, refPrefix)
		t.quantity = strings.HasSuffix(name, "api.resource.Quantity")
		if t.schema, ok = definitions[name]; !ok {
			return nil
		}
	}
	return nil
}

// Shape reads the extensions that Kubernetes has for lists and numbers.
func (t *jsonType) Shape() Shape {
	var shape Shape
	shape.Quantity = t.quantity || isQuantityPattern(t.schema["pattern"])
	switch kind, _ := t.schema["x-kubernetes-list-type"].(string); ListKind(kind) {
	case ListSet:
		shape.List = ListSet
	case ListAtomic:
		shape.List = ListAtomic
	case ListMap:
		shape.List = ListMap
		keys, _ := t.schema["x-kubernetes-list-map-keys"].([]any)
		for _, key := range keys {
			if name, ok := key.(string); ok {
				shape.Keys = append(shape.Keys, name)
			}
		}
	}
	return shape
}

// isQuantityPattern recognises the pattern that controller-gen writes for
// resource.Quantity: it is all that remains of the type in a structural schema.
func isQuantityPattern(pattern any) bool {
	s, _ := pattern.(string)
	return strings.Contains(s, "(([KMGTPE]i)|[numkMGTPE]|")
}

// Field returns the type of a property, or of the values of a map.
func (t *jsonType) Field(name string) Type {
	if property := t.property(name); property != nil {
		return newJSONType(property, t.definitions)
	}
	return newJSONType(t.schema["additionalProperties"], t.definitions)
}

func (t *jsonType) property(name string) map[string]any {
	properties, _ := t.schema["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	return property
}

// Item returns the type of the items of a list.
func (t *jsonType) Item() Type {
	return newJSONType(t.schema["items"], t.definitions)
}

// Default returns the default that the schema states.
func (t *jsonType) Default(field string, _ map[string]any) (any, bool) {
	value, ok := t.property(field)["default"]
	return value, ok && value != nil
}
