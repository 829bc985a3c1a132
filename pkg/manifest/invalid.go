package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxFieldErrors is the largest number of reported errors of one object, which bounds the size of
// the error.
const maxFieldErrors = 20

// FieldError is a fault of a manifest.
type FieldError struct {
	// Path is the path of the field from the root of the object: "metadata", "labels",
	// "app.kubernetes.io/name".
	Path []string
	// Type classifies the error in terms of the API machinery.
	Type field.ErrorType
	// Problem describes the found and the allowed value. It never contains values of a Secret's
	// data.
	Problem string
}

// Field returns the path as text: metadata.labels[app.kubernetes.io/name].
func (e FieldError) Field() string {
	var b strings.Builder
	for i, step := range e.Path {
		switch {
		case i == 2 && (e.Path[1] == "labels" || e.Path[1] == "annotations"):
			b.WriteString("[" + step + "]")
		case i > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	return b.String()
}

func (e FieldError) Error() string {
	return e.Field() + ": " + e.Problem
}

// Under converts the error to an error of the API machinery, for an object at parent in a larger
// object. A nil parent is the root.
func (e FieldError) Under(parent *field.Path) *field.Error {
	name := e.Field()
	if parent != nil {
		name = parent.String() + "." + name
	}
	return &field.Error{Type: e.Type, Field: name, BadValue: field.OmitValueType{}, Detail: e.Problem}
}

// InvalidError lists the faults of a manifest, in a fixed order.
type InvalidError struct {
	Fields []FieldError
	// Omitted is the number of errors that are not listed.
	Omitted int
}

func (e *InvalidError) Error() string {
	parts := make([]string, 0, len(e.Fields)+1)
	for _, f := range e.Fields {
		parts = append(parts, f.Error())
	}
	if e.Omitted > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", e.Omitted))
	}
	return strings.Join(parts, "; ")
}

// Under converts all errors to errors of the API machinery, for an object at parent in a larger
// object.
func (e *InvalidError) Under(parent *field.Path) field.ErrorList {
	var list field.ErrorList
	for _, f := range e.Fields {
		list = append(list, f.Under(parent))
	}
	return list
}

type findings struct{ InvalidError }

func (f *findings) add(kind field.ErrorType, problem string, path ...string) {
	if len(f.Fields) == maxFieldErrors {
		f.Omitted++
		return
	}
	f.Fields = append(f.Fields, FieldError{Path: path, Type: kind, Problem: problem})
}

// err returns nil, as an interface, without findings.
func (f *findings) err() error {
	if len(f.Fields) == 0 {
		return nil
	}
	return &f.InvalidError
}
