package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

// Renderer makes phased objects of files. The same files give the same bytes.
type Renderer interface {
	// Render reads a file system with the input at its root: a folder, a chart, or the content of
	// an image. Errors in files are a *directory.Errors.
	Render(ctx context.Context, fsys fs.FS) (Rendered, error)
}

// Rendered is the result of a renderer.
type Rendered struct {
	Phases []Phase
	// Package and Version are the name and version of the input; empty if the input has none.
	Package, Version string
	// KubeVersion is the range of versions of Kubernetes that a chart states; empty when the input
	// states none.
	KubeVersion string
	// Notes are for people, as the input words them; empty when it has none.
	Notes string
	// Requires lists the requirements that the input does not bring.
	Requires []Requirement
	// Properties that the input declares of itself, in its order.
	Properties []Property
	// Warnings list changes, omissions, and content that a cluster may refuse.
	Warnings []Warning
}

// Warning is one thing to know about the input, with the place to go to.
type Warning struct {
	// File is the slash-separated path below the root; empty is the input as a whole.
	File string
	// Line counts from 1; 0 is the file as a whole.
	Line    int
	Message string
}

func (w Warning) String() string {
	switch {
	case w.File == "":
		return w.Message
	case w.Line == 0:
		return w.File + ": " + w.Message
	default:
		return fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Message)
	}
}

// Property is one thing that a package declares of itself, as catalogs have it.
type Property struct {
	// Type is the type of the value, such as olm.gvk.
	Type string `json:"type"`
	// Value is any JSON.
	Value json.RawMessage `json:"value"`
}

// maxOpenShift is the property with the last version of OpenShift that a bundle supports.
const maxOpenShift = "olm.maxOpenShiftVersion"

// MaxOpenShift is the last version of OpenShift that the input states, as JSON such as "4.20"; empty
// when it states none. Several values have commas between them.
func (r *Rendered) MaxOpenShift() string {
	var values []string
	for _, one := range r.Properties {
		if one.Type == maxOpenShift {
			values = append(values, string(one.Value))
		}
	}
	return strings.Join(values, ",")
}
