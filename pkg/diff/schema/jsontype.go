package schema

import "strings"

type jsonType struct{ schema map[string]any }

// newJSONType returns the type of a schema, or nil without a schema. A schema inside allOf, which
// some generators use to add a default, is unwrapped.
func newJSONType(definition any) Type {
	s, ok := definition.(map[string]any)
	if !ok {
		return nil
	}
	for s["properties"] == nil {
		all, _ := s["allOf"].([]any)
		if len(all) != 1 {
			break
		}
		only, ok := all[0].(map[string]any)
		if !ok {
			break
		}
		s = only
	}
	return &jsonType{schema: s}
}

// Shape reads the Kubernetes extensions for lists and numbers.
func (t *jsonType) Shape() Shape {
	var shape Shape
	shape.Quantity = isQuantity(t.schema["pattern"])
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

// IsQuantityPattern recognises the pattern that controller-gen writes for resource.Quantity. A
// structural schema has no other trace of the type.
func IsQuantityPattern(pattern string) bool {
	return strings.Contains(pattern, "(([KMGTPE]i)|[numkMGTPE]|")
}

// Field returns the type of a property, or of the values of a map.
func (t *jsonType) Field(name string) Type {
	if property := t.property(name); property != nil {
		return newJSONType(property)
	}
	return newJSONType(t.schema["additionalProperties"])
}

func (t *jsonType) property(name string) map[string]any {
	properties, _ := t.schema["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	return property
}

// Item returns the type of the items of a list.
func (t *jsonType) Item() Type {
	return newJSONType(t.schema["items"])
}

// Default returns the default in the schema.
func (t *jsonType) Default(field string, _ Parent) (any, bool) {
	value, ok := t.property(field)["default"]
	return value, ok && value != nil
}
