package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxFieldErrors bounds what is reported of one object, so that an object with
// ten thousand bad annotations does not make an error of a megabyte.
const maxFieldErrors = 20

// FieldError is one thing that is wrong with a manifest.
type FieldError struct {
	// Path is the path of the field from the root of the object: "metadata", "labels",
	// "app.kubernetes.io/name".
	Path []string
	// Type classifies the error as the API machinery does.
	Type field.ErrorType
	// Problem says what was found and what is allowed. It never contains values of a Secret's data.
	Problem string
}

// Field spells the path for people: metadata.labels[app.kubernetes.io/name].
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

// Under returns the error as the API machinery reports it, for an object that
// stands at parent in a larger one. A nil parent is the root.
func (e FieldError) Under(parent *field.Path) *field.Error {
	name := e.Field()
	if parent != nil {
		name = parent.String() + "." + name
	}
	return &field.Error{Type: e.Type, Field: name, BadValue: field.OmitValueType{}, Detail: e.Problem}
}

// InvalidError is everything that is wrong with a manifest, in a fixed order.
type InvalidError struct {
	Fields []FieldError
	// Omitted is the number of further errors that are not listed.
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

// Under returns all errors as the API machinery reports them, for an object
// that stands at parent in a larger one.
func (e *InvalidError) Under(parent *field.Path) field.ErrorList {
	var list field.ErrorList
	for _, f := range e.Fields {
		list = append(list, f.Under(parent))
	}
	return list
}

// findings collects field errors.
type findings struct{ InvalidError }

func (f *findings) add(kind field.ErrorType, problem string, path ...string) {
	if len(f.Fields) == maxFieldErrors {
		f.Omitted++
		return
	}
	f.Fields = append(f.Fields, FieldError{Path: path, Type: kind, Problem: problem})
}

// err returns a nil interface when nothing was found.
func (f *findings) err() error {
	if len(f.Fields) == 0 {
		return nil
	}
	return &f.InvalidError
}
