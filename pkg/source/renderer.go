package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

// Renderer renders files into phased objects. Output for equal files is byte-identical.
type Renderer interface {
	// Render reads a file system with the input at its root: a folder, a chart, or the content of
	// an image. Errors in files are a *directory.Errors.
	Render(ctx context.Context, fsys fs.FS) (Rendered, error)
}

// Rendered is the result of a renderer.
type Rendered struct {
	Phases []Phase
	// Package and Version are the name and version of the input; empty if it has none.
	Package, Version string
	// KubeVersion is the range of Kubernetes versions that a chart states; empty if it states none.
	KubeVersion string
	// Notes is a text for users from the input; empty if it has none.
	Notes string
	// Requires are the requirements that the input does not provide itself.
	Requires []Requirement
	// Properties are declared by the input, in its order.
	Properties []Property
	// Warnings list changes, omissions, and content that a cluster may refuse.
	Warnings []Warning
}

// Warning is a warning about the input, with its place.
type Warning struct {
	// File is the slash-separated path below the root; empty for the input as a whole.
	File string
	// Line counts from 1; 0 means the whole file.
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

// Property is a property that a package declares, in the format of catalogs.
type Property struct {
	// Type is the type of the value, such as olm.gvk.
	Type string `json:"type"`
	// Value is any JSON.
	Value json.RawMessage `json:"value"`
}

// maxOpenShift is the property with the last OpenShift version that a bundle supports.
const maxOpenShift = "olm.maxOpenShiftVersion"

// MaxOpenShift returns the last OpenShift version that the input states, as JSON such as "4.20";
// empty if it states none. Several values are separated by commas.
func (r *Rendered) MaxOpenShift() string {
	var values []string
	for _, one := range r.Properties {
		if one.Type == maxOpenShift {
			values = append(values, string(one.Value))
		}
	}
	return strings.Join(values, ",")
}
