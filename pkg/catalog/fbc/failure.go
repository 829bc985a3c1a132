package fbc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Error reports a document that cannot be read, with the reason.
type Error struct {
	// File is the given name, or the path relative to the directory.
	File string
	// Line is the first line of the document, or the wrong line within it. It is 0 if the file
	// cannot be read.
	Line int
	// Schema, Package and Name of the document, if known.
	Schema, Package, Name string
	Err                   error
}

// Error returns text such as "catalog.yaml:12: package argocd-operator: olm.bundle
// argocd-operator.v1: …".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Package != "" {
		fmt.Fprintf(&b, "package %s: ", e.Package)
	}
	if e.Schema != "" && e.Schema != SchemaPackage {
		b.WriteString(strings.TrimSuffix(e.Schema+" "+e.Name, " ") + ": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// inWords describes a JSON error without Go's terms.
func inWords(err error) error {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		wanted := map[string]string{"struct": "object", "slice": "array", "ptr": "object", "map": "object"}
		kind := mistyped.Type.Kind().String()
		if word, found := wanted[kind]; found {
			kind = word
		}
		where := "the document"
		if mistyped.Field != "" {
			where = "field " + mistyped.Field
		}
		return fmt.Errorf("%s: is of type %s, want %s", where, mistyped.Value, kind)
	}
	return err
}
