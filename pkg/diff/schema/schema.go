// Package schema provides the types of fields: which lists have keys, which values are quantities,
// and which defaults an API server sets. The types come from client-go and a table of defaults
// (NewBuiltin), and from CustomResourceDefinitions (NewDefinitions).
//
// It imports no other package of pkg/diff.
package schema

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schema returns the types of objects.
type Schema interface {
	// TypeOf returns the type of the objects of a kind, or nil.
	TypeOf(kind schema.GroupVersionKind) Type
}

// Type describes the values at one position of an object. A nil Type describes any value. Types may
// be recursive, so callers descend one step at a time.
type Type interface {
	// Shape returns how values of the type are compared.
	Shape() Shape
	// Field returns the type of a field, or of a value of a map.
	Field(name string) Type
	// Item returns the type of the items of a list.
	Item() Type
	// Default returns the value that an API server sets for a field that parent does not have. An
	// empty object is an object whose fields all have defaults.
	Default(field string, parent Parent) (value any, ok bool)
}

// Parent is the object to which a default would be added.
type Parent interface {
	// Value returns the value of a field as decoded from JSON; nil if it is null or absent.
	Value(field string) any
}

// ListKind is the way in which a list identifies its items.
type ListKind string

// The kinds of lists, in the spelling of x-kubernetes-list-type. For Unknown and Atomic lists, a
// comparison finds keys itself: an atomic list is owned as a whole, and its items may still have
// keys.
const (
	ListUnknown ListKind = ""
	ListAtomic  ListKind = "atomic"
	ListMap     ListKind = "map"
	ListSet     ListKind = "set"
)

// Shape determines how two values are compared.
type Shape struct {
	List ListKind
	// Keys are the fields that identify an item of a ListMap.
	Keys []string
	// Quantity is true if 0.5 and 500m are the same value.
	Quantity bool
	// EmptyIsAbsent is true if an empty list or object is stored as absent.
	EmptyIsAbsent bool
}

// Layers returns a schema that returns the first type found in schemas. It skips nil schemas.
func Layers(schemas ...Schema) Schema {
	var known layers
	for _, s := range schemas {
		if s != nil {
			known = append(known, s)
		}
	}
	return known
}

type layers []Schema

func (l layers) TypeOf(kind schema.GroupVersionKind) Type {
	for _, s := range l {
		if t := s.TypeOf(kind); t != nil {
			return t
		}
	}
	return nil
}
