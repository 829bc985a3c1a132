package cel

import (
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// factsOf returns facts in the form for expressions: for each requirement served, version, fields
// and objects.
func factsOf(requirements []v1alpha1.DefinitionRequirement, facts profile.Facts) map[string]any {
	all := map[string]any{}
	for _, requirement := range requirements {
		definition, served := facts.Definitions[requirement.Definition]
		version := definition.Preferred()
		fields := map[string]any{}
		for _, one := range requirement.Fields {
			there, enum := fieldOf(version.Schema, one.Path)
			fields[one.Path] = map[string]any{"served": there, "enum": enum}
		}
		objects := []any{}
		for _, object := range facts.Objects[kindOf(requirement)] {
			objects = append(objects, object.Object)
		}
		all[requirement.Name] = map[string]any{"served": served, "version": version.Name, "fields": fields, "objects": objects}
	}
	return all
}

// fieldOf reports whether a schema has a field, and returns the allowed values of the field. A
// schema that preserves unknown fields has every field.
func fieldOf(schema map[string]any, path string) (there bool, enum []any) {
	enum = []any{}
	here := schema
	for _, step := range steps(path) {
		if here == nil {
			return false, enum
		}
		if open, _ := here["x-kubernetes-preserve-unknown-fields"].(bool); open && step != "[]" && within1(here, step) == nil {
			return true, enum
		}
		here = within1(here, step)
	}
	if here == nil {
		return false, enum
	}
	if values, ok := here["enum"].([]any); ok {
		enum = values
	}
	return true, enum
}

// within1 returns the schema of a direct child, or nil.
func within1(schema map[string]any, step string) map[string]any {
	if step == "[]" {
		items, _ := schema["items"].(map[string]any)
		return items
	}
	properties, _ := schema["properties"].(map[string]any)
	found, _ := properties[step].(map[string]any)
	return found
}

// steps splits a path such as spec.profiles[].name.
func steps(path string) []string {
	var out []string
	for _, name := range strings.Split(path, ".") {
		plain := strings.TrimSuffix(name, "[]")
		out = append(out, plain)
		if plain != name {
			out = append(out, "[]")
		}
	}
	return out
}
