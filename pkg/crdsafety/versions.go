package crdsafety

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"

	"github.com/penstock-project/penstock/pkg/text"
)

// longestValue is the largest size of a value in a message, in bytes.
const longestValue = 80

// compareVersions compares every property of one schema with another. If absent is false, missing
// properties are ignored, because the check for removed fields reports them. Otherwise they count
// as empty schemas.
func (c *Checker) compareVersions(name string, from, to apiextensionsv1.CustomResourceDefinitionVersion, absent bool) []Finding {
	before, after := flatten(from.Schema.OpenAPIV3Schema), flatten(to.Schema.OpenAPIV3Schema)
	var found []Finding
	for _, path := range slices.Sorted(maps.Keys(before)) {
		other, there := after[path]
		if !there {
			if !absent {
				continue
			}
			other = &apiextensionsv1.JSONSchemaProps{}
		}
		if !equality.Semantic.DeepEqual(before[path], other) {
			found = append(found, c.compareProperty(name, path, before[path], other)...)
		}
	}
	return found
}

// compareProperty runs all checks. Each check blanks the fields that it compared. No check handles
// the fields that still differ then.
func (c *Checker) compareProperty(name, path string, before, after *apiextensionsv1.JSONSchemaProps) []Finding {
	old, now := before, after
	before, after = before.DeepCopy(), after.DeepCopy()
	var found []Finding
	for _, check := range c.properties {
		for _, finding := range c.findings(name, path, check.Compare(before, after)) {
			finding.Words, finding.Message = ofProperty(finding, old, now), inOrder(finding, old, now)
			found = append(found, finding)
		}
	}
	if !equality.Semantic.DeepEqual(before, after) {
		found = append(found, Finding{
			Check: unhandled, Version: name, Property: path, Warning: c.warn[unhandled],
			Message: unhandledMessage(before, after), Words: ofOthers(name, path, before, after),
		})
	}
	return found
}

func unhandledMessage(before, after *apiextensionsv1.JSONSchemaProps) string {
	old, now := fieldsOf(before), fieldsOf(after)
	names := map[string]bool{}
	for name := range old {
		names[name] = true
	}
	for name := range now {
		names[name] = true
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := shown(old, name), shown(now, name); a != b {
			parts = append(parts, fmt.Sprintf("%s: %s -> %s", name, a, b))
		}
	}
	return "no check can tell whether this is safe: " + strings.Join(parts, ", ")
}

func fieldsOf(schema *apiextensionsv1.JSONSchemaProps) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	encoded, err := json.Marshal(schema)
	if err != nil || json.Unmarshal(encoded, &fields) != nil {
		return nil
	}
	return fields
}

func shown(fields map[string]json.RawMessage, name string) string {
	if value, found := fields[name]; found {
		return text.Clip(string(value), longestValue)
	}
	return "none"
}

// compareServed compares versions that are served at the same time without a conversion webhook. An
// object written in one version must be readable in the other. Findings that also apply to the live
// definition are omitted.
func (c *Checker) compareServed(live, next *apiextensionsv1.CustomResourceDefinition) []Finding {
	if next.Spec.Conversion != nil && next.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		return nil
	}
	known := map[Finding]bool{}
	for _, finding := range c.servedPairs(live) {
		known[finding] = true
	}
	return slices.DeleteFunc(c.servedPairs(next), func(finding Finding) bool { return known[finding] })
}

func (c *Checker) servedPairs(definition *apiextensionsv1.CustomResourceDefinition) []Finding {
	served := slices.DeleteFunc(slices.Clone(definition.Spec.Versions), func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Served })
	slices.SortFunc(served, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return version.CompareKubeAwareVersionStrings(a.Name, b.Name)
	})
	var found []Finding
	for i, from := range served {
		for _, to := range served[i+1:] {
			found = append(found, c.compareVersions(from.Name+" -> "+to.Name, from, to, true)...)
		}
	}
	return found
}

// flatten returns every property by its path, without nested properties.
func flatten(schema *apiextensionsv1.JSONSchemaProps) map[string]*apiextensionsv1.JSONSchemaProps {
	all := map[string]*apiextensionsv1.JSONSchemaProps{}
	addProperties(all, field.NewPath("^"), schema)
	return all
}

func addProperties(to map[string]*apiextensionsv1.JSONSchemaProps, path *field.Path, schema *apiextensionsv1.JSONSchemaProps) {
	if schema == nil {
		return
	}
	own := *schema
	own.Properties, own.Items = nil, nil
	if own.AdditionalProperties != nil && own.AdditionalProperties.Schema != nil {
		own.AdditionalProperties = nil
	}
	to[path.String()] = normalised(own.DeepCopy())
	for name := range schema.Properties {
		below := schema.Properties[name]
		if strings.ContainsAny(name, ".[") {
			// The name is quoted. Otherwise its path could equal that of a nested property, and
			// hide its changes.
			addProperties(to, path.Key(strconv.Quote(name)), &below)
			continue
		}
		addProperties(to, path.Child(name), &below)
	}
	if items := schema.Items; items != nil {
		addProperties(to, path.Key("*"), items.Schema)
		for i := range items.JSONSchemas {
			addProperties(to, path.Index(i), &items.JSONSchemas[i])
		}
	}
	if more := schema.AdditionalProperties; more != nil {
		addProperties(to, path.Key("*"), more.Schema)
	}
}

// normalised removes differences without effect: descriptions and examples in alternatives, and the
// spelling of JSON values. It changes its argument.
func normalised(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for i := range list {
			withoutWords(&list[i])
		}
	}
	if schema.Not != nil {
		withoutWords(schema.Not)
	}
	if schema.Default != nil {
		schema.Default.Raw = canonical(schema.Default.Raw)
	}
	for i := range schema.Enum {
		schema.Enum[i].Raw = canonical(schema.Enum[i].Raw)
	}
	return schema
}

func withoutWords(schema *apiextensionsv1.JSONSchemaProps) {
	schema.Description, schema.Example = "", nil
	normalised(schema)
	for name, below := range schema.Properties {
		withoutWords(&below)
		schema.Properties[name] = below
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		withoutWords(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		withoutWords(schema.AdditionalProperties.Schema)
	}
}

// canonical returns the same JSON with sorted keys and without white space.
func canonical(raw []byte) []byte {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return raw
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return encoded
}

// withSchemas returns a copy in which every version has a schema. The checks of the library require
// that, and a definition may have no schema.
func withSchemas(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	definition = definition.DeepCopy()
	for i := range definition.Spec.Versions {
		one := &definition.Spec.Versions[i]
		if one.Schema == nil {
			one.Schema = &apiextensionsv1.CustomResourceValidation{}
		}
		if one.Schema.OpenAPIV3Schema == nil {
			one.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{}
		}
	}
	return definition
}
