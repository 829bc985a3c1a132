package schema

import "strings"

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
	shape.Quantity = t.quantity || isQuantity(t.schema["pattern"])
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

func isQuantity(pattern any) bool {
	s, _ := pattern.(string)
	return IsQuantityPattern(s)
}

// IsQuantityPattern recognises the pattern that controller-gen writes for
// resource.Quantity: it is all that remains of the type in a structural schema.
func IsQuantityPattern(pattern string) bool {
	return strings.Contains(pattern, "(([KMGTPE]i)|[numkMGTPE]|")
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
