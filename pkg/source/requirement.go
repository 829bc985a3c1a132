package source

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Requirement is a package, kind or constraint that a bundle requires and does not provide. Exactly
// one of Package, Kind and Constraint is set.
type Requirement struct {
	// Package is the name of another package. VersionRange is its required range; empty for any
	// version.
	Package, VersionRange string
	// Kind is a kind that another package provides.
	Kind schema.GroupVersionKind
	// Constraint is a compound constraint, as JSON.
	Constraint string

	// File, Line and Field are the place of the requirement.
	File  string
	Line  int
	Field string
}

// String returns text for messages: "package cert-manager >=1.0.0".
func (r Requirement) String() string {
	switch {
	case r.Package != "":
		return strings.TrimSpace("package " + r.Package + " " + r.VersionRange)
	case r.Constraint != "":
		return "constraint " + r.Constraint
	default:
		return fmt.Sprintf("kind %s of %s", r.Kind.Kind, r.Kind.GroupVersion())
	}
}

// MetBy reports whether a package with these bundle properties provides the requirement. It does
// not compare versions.
func (r Requirement) MetBy(name string, properties []Property) bool {
	if r.Package != "" {
		return r.Package == name
	}
	return slices.ContainsFunc(properties, func(one Property) bool {
		var kind schema.GroupVersionKind
		return r.Kind.Kind != "" && one.Type == "olm.gvk" && json.Unmarshal(one.Value, &kind) == nil && kind == r.Kind
	})
}
