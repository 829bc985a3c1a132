package bundle

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// requirement parses a property. It accepts both spellings of the type, with and without
// ".required".
func requirement(property source.Property, file string, line int) (r source.Requirement, isOne bool, err error) {
	refuse := func(format string, args ...any) error {
		return fail(directory.Located{File: file}, line, "%s: %s", property.Type, fmt.Sprintf(format, args...))
	}
	var value struct {
		Group, Version, Kind      string
		PackageName, VersionRange string
	}
	r = source.Requirement{File: file, Line: line, Field: property.Type}
	switch property.Type {
	case "olm.constraint":
		if r.Constraint = string(property.Value); r.Constraint == "" {
			return r, false, refuse("value is missing")
		}
		return r, true, nil
	case "olm.gvk", "olm.gvk.required", "olm.package", "olm.package.required":
	default:
		return r, false, nil
	}
	if err := json.Unmarshal(property.Value, &value); err != nil {
		return r, false, refuse("value cannot be read: %v", err)
	}
	if strings.HasPrefix(property.Type, "olm.package") {
		r.Package, r.VersionRange = value.PackageName, value.VersionRange
		if r.VersionRange == "" {
			r.VersionRange = value.Version
		}
		if r.Package == "" {
			return r, false, refuse("packageName is missing")
		}
		return r, true, nil
	}
	r.Kind = schema.GroupVersionKind{Group: value.Group, Version: value.Version, Kind: value.Kind}
	if r.Kind.Kind == "" {
		return r, false, refuse("kind is missing")
	}
	return r, true, nil
}

// readDependencies reads dependencies.yaml, in which types do not end in ".required".
func readDependencies(fsys fs.FS) ([]source.Requirement, error) {
	var file struct {
		Dependencies []source.Property `json:"dependencies"`
	}
	if _, err := readMetadata(fsys, dependenciesFile, &file); err != nil {
		return nil, err
	}
	var all []source.Requirement
	for _, one := range file.Dependencies {
		required, isOne, err := requirement(one, dependenciesFile, 0)
		if err != nil {
			return nil, err
		}
		if !isOne {
			return nil, fmt.Errorf("%s: type %q is not known: want olm.package, olm.gvk or olm.constraint", dependenciesFile, one.Type)
		}
		all = append(all, required)
	}
	return all, nil
}

// readRequirements collects the requirements from all their places, without kinds that the bundle
// itself defines.
func (c *contents) readRequirements(dependencies []source.Requirement) ([]source.Requirement, error) {
	all := dependencies
	for i, one := range c.properties {
		if !strings.HasSuffix(one.Type, ".required") && one.Type != "olm.constraint" {
			continue
		}
		file, line := propertiesFile, 0
		if i < c.annotated {
			file, line = c.csvFile.File, c.csvFile.LineAt("metadata", "annotations", propertiesAnnotation)
		}
		required, isOne, err := requirement(one, file, line)
		if err != nil {
			return nil, err
		}
		if isOne {
			all = append(all, required)
		}
	}
	for i, one := range c.csv.Spec.Definitions.Required {
		_, group, _ := strings.Cut(one.Name, ".")
		all = append(all, c.required(schema.GroupVersionKind{Group: group, Version: one.Version, Kind: one.Kind}, "customresourcedefinitions", i))
	}
	for i, one := range c.csv.Spec.APIServices.Required {
		all = append(all, c.required(schema.GroupVersionKind(one), "apiservicedefinitions", i))
	}
	var kept []source.Requirement
	for _, one := range all {
		if !c.brings(one.Kind) && !slices.ContainsFunc(kept, func(other source.Requirement) bool { return other.String() == one.String() }) {
			kept = append(kept, one)
		}
	}
	return kept, nil
}

func (c *contents) required(kind schema.GroupVersionKind, list string, i int) source.Requirement {
	path := []any{"spec", list, "required", i}
	return source.Requirement{Kind: kind, File: c.csvFile.File, Line: c.csvFile.LineAt(path...), Field: fieldName(path)}
}

// brings reports whether the bundle defines the kind.
func (c *contents) brings(kind schema.GroupVersionKind) bool {
	return kind.Kind != "" && slices.ContainsFunc(c.definitions, func(one directory.Located) bool {
		defined, err := one.DefinedKind()
		return err == nil && defined == kind.GroupKind()
	})
}
