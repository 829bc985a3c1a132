// Package schema knows the types of fields: which lists have keys, which values are quantities, and
// which defaults an API server fills in. It knows them from client-go and a table of defaults
// (NewBuiltin), and from CustomResourceDefinitions (NewDefinitions).
//
// It imports no other package of pkg/diff: knowledge of types does not depend on its use.
package schema

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schema returns the types of objects.
type Schema interface {
	// TypeOf returns the type of the objects of a kind, or nil.
	TypeOf(kind schema.GroupVersionKind) Type
}

// Type describes the values at one position of an object. Its nil value describes any value. Types may
// be recursive, so callers descend one step at a time.
type Type interface {
	// Shape says how values of the type are compared.
	Shape() Shape
	// Field returns the type of a field, or of the value behind a key of a map.
	Field(name string) Type
	// Item returns the type of the items of a list.
	Item() Type
	// Default returns what an API server fills in for a field that its parent does
	// not have. An empty object stands for one all fields of which are defaulted.
	Default(field string, parent Parent) (value any, ok bool)
}

// Parent is the object to which a default is to be added.
type Parent interface {
	// Value returns the value of a field as decoded from JSON, nil of one that is null
	// or absent.
	Value(field string) any
}

// ListKind is the way in which a list identifies its items.
type ListKind string

// The kinds of lists, as x-kubernetes-list-type spells them. A comparison looks for
// keys itself in a list that is Unknown, and in one that is Atomic as well: that a
// list has one owner does not say how people read it.
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
	// Quantity is true if 0.5 and 500m are one value.
	Quantity bool
	// EmptyIsAbsent is true if an empty list or object is stored as none.
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
