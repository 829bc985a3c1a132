package accepted

import (
	"fmt"
	"strings"
	"testing"
)

const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"labels":{"app":"x"},"name":"things.example.com"},"spec":{"group":"example.com","names":{"kind":"Thing","plural":"things"},"scope":"Namespaced","versions":[` +
	`{"additionalPrinterColumns":[{"jsonPath":".spec.a","name":"A","type":"string"}],"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"kind":{"description":"old kind","type":"string"},"metadata":{"type":"object"},"spec":{"description":"old","type":"object","required":["a"],"properties":{` +
	`"a":{"enum":["x","y"],"type":"string"},"b":{"default":"x","type":"string"},"list":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"description":"old v","type":"string"}}},"x-kubernetes-list-map-keys":["k"],"x-kubernetes-list-type":"map"},` +
	`"names":{"type":"array","items":{"type":"string"}},"labels":{"type":"object","additionalProperties":{"description":"old value","type":"string"}},"set":{"default":{"n":1},"type":"object","properties":{"n":{"description":"old n","type":"integer"}}},` +
	`"either":{"type":"object","oneOf":[{"required":["i"]}],"properties":{"i":{"type":"string"}}},"pod":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"description":"old pod","type":"object"}}}}}}}},"served":true,"storage":true}]}}`

// definitionCases are changes of definitions.
func definitionCases() map[string]change {
	edit := func(reason, unknown string, edits ...string) change { return change{reason, crd, edits, unknown} }
	added := func(reason, unknown, schema string) change {
		return edit(reason, unknown, `"a":{`, `"new":`+schema+`,"a":{`)
	}
	ruled := strings.Replace(crd, `"a":{"enum"`, `"a":{"x-kubernetes-validations":[{"rule":"true"}],"enum"`, 1)
	selected := strings.Replace(crd, `"name":"v1"`, `"name":"v1","selectableFields":[{"jsonPath":".spec.a"}]`, 1)
	large := strings.Replace(crd, `"old"`, `"`+strings.Repeat("x", mostBytes)+`"`, 1)
	return map[string]change{
		"description":            edit("a description is text", "", `"old"`, `"new"`),
		"description-gone":       edit("or none", "", `"description":"old",`, ``),
		"description-number":     edit("and no number", "properties.spec.description: has a value", `"old"`, `1`),
		"description-defaulted":  edit("it may change below a default", "", `"old n"`, `"new"`),
		"description-embedded":   edit("and in what is embedded", "", `"old pod"`, `"new"`),
		"description-kind":       edit("and of what all objects have", "", `"old kind"`, `"new"`),
		"description-value":      edit("of values, too", "", `"old value"`, `"new"`),
		"description-metadata":   edit("metadata has no description", "metadata", `"metadata":{"type":"object"}`, `"metadata":{"type":"object","description":"x"}`),
		"description-nullified":  edit("null is no text", "description", `"old"`, `null`),
		"kind-pattern":           edit("what all objects have is fixed", "is of all objects", `"kind":{"description":"old kind"`, `"kind":{"pattern":"x"`),
		"kind-gone":              edit("and stays", "is of all objects", `"kind":{"description":"old kind","type":"string"},`, ``),
		"property":               added("a property comes", "", `{"type":"string"}`),
		"property-gone":          edit("a property goes", "", `"names":{"type":"array","items":{"type":"string"}},`, ``),
		"property-required":      edit("even one that is required", "", `"a":{"enum":["x","y"],"type":"string"},`, ``),
		"property-of-a-default":  edit("not one that a default may have", "has a default", `"n":{"description":"old n"`, `"m":{"type":"string"},"n":{"description":"old n"`),
		"property-of-embedded":   edit("nor one of a resource", "embedded", `"spec":{"description":"old pod"`, `"metadata":{"type":"string"},"spec":{"description":"old pod"`),
		"property-quantified":    edit("nor one that a quantifier may name", "a quantifier", `"i":{"type":"string"}`, ``),
		"property-beside":        edit("one beside a quantifier may come", "", `"i":{`, `"j":{"type":"string"},"i":{`),
		"property-key":           edit("a key of a list stays", "a key of the map", `"k":{"type":"string"},`, ``),
		"property-beside-values": edit("values and properties exclude each other", "properties do not go", `"labels":{"type":"object"`, `"labels":{"properties":{"x":{"type":"string"}},"type":"object"`),
		"property-untyped":       added("a schema has a type", "the type is not one", `{"description":"x"}`),
		"property-odd":           added("of those there are", "the type is not one", `{"type":"text"}`),
		"property-null":          edit("and is one", "is no schema", `"a":{`, `"new":null,"a":{`),
		"property-ref":           added("other keywords are not judged", "new.$ref", `{"type":"object","$ref":"x"}`),
		"property-nullable":      added("such as this", "new.nullable", `{"type":"object","nullable":true}`),
		"property-either":        added("a number or a text", "", `{"anyOf":[{"type":"integer"},{"type":"string"}],"pattern":"^1$","x-kubernetes-int-or-string":true}`),
		"property-either-typed":  added("has no type", "the type is not one", `{"type":"string","x-kubernetes-int-or-string":true}`),
		"property-any-of":        added("other quantifiers are not judged", "quantifiers", `{"type":"string","anyOf":[{"type":"integer"},{"type":"string"}]}`),
		"property-free":          added("anything", "", `{"x-kubernetes-preserve-unknown-fields":true}`),
		"property-free-false":    added("or nothing is said", "has a value", `{"type":"object","x-kubernetes-preserve-unknown-fields":false}`),
		"property-long":          edit("its name is a key of YAML, which is not longer than 1,024 characters", "name", `"a":{`, `"`+strings.Repeat("x", 1100)+`":{"type":"string"},"a":{`),
		"property-long-below":    added("anywhere", "name", `{"type":"object","properties":{"`+strings.Repeat("x", 1100)+`":{"type":"string"}}}`),
		"property-deep":          added("a tree", "", `{"type":"array","items":{"type":"object","properties":{"x":{"type":"object","additionalProperties":{"type":"integer","format":"int32"}}}}}`),
		"property-deep-bad":      added("is looked at all over", "new.items.properties.x.additionalProperties", `{"type":"array","items":{"type":"object","properties":{"x":{"type":"object","additionalProperties":{"type":"integer","format":1}}}}}`),
		"property-no-items":      added("an array has items", "items do not go", `{"type":"array"}`),
		"property-items":         added("and nothing else has", "items do not go", `{"type":"object","items":{"type":"string"}}`),
		"property-closed":        added("a boolean for values is not judged", "is no schema", `{"type":"object","additionalProperties":false}`),

		"keyword-pattern":      edit("a pattern compiles", "", `"enum":["x","y"]`, `"pattern":"^x$"`),
		"keyword-pattern-bad":  edit("or is refused", "pattern: has a value", `"enum":["x","y"]`, `"pattern":"("`),
		"keyword-pattern-new":  edit("classes of Unicode are not alike in all servers", "pattern: has a value", `"enum":["x","y"]`, `"pattern":"\\p{Letter}"`),
		"keyword-enum":         edit("one value more", "", `["x","y"]`, `["x","y","z"]`),
		"keyword-enum-null":    edit("null is not judged", "enum: has a value", `["x","y"]`, `["x",null]`),
		"keyword-enum-none":    edit("nor is nothing", "enum: has a value", `["x","y"]`, `[]`),
		"keyword-required":     edit("what is required may change", "", `["a"]`, `["a","b"]`),
		"keyword-required-key": edit("but for keys of lists", "a key of the map", `["k"]`, `["v"]`),
		"keyword-required-bad": edit("it is a list of words", "required: has a value", `["a"]`, `[1]`),
		"keyword-count":        edit("lengths are whole numbers", "maxLength: has a value", `"enum"`, `"maxLength":1.5,"enum"`),
		"keyword-type":         edit("types stay", "a.type", `"enum":["x","y"],"type":"string"`, `"enum":["x","y"],"type":"integer"`),
		"keyword-root":         edit("at the root there are few keywords", "at the root", `"openAPIV3Schema":{`, `"openAPIV3Schema":{"maxProperties":3,`),
		"keyword-root-free":    edit("of those that are known", "what may change", `"openAPIV3Schema":{`, `"openAPIV3Schema":{"x-kubernetes-preserve-unknown-fields":true,`),
		"keyword-unknown-gone": edit("what goes is known, too", "of its end", `"x-kubernetes-embedded-resource":true,`, ``),
		"keyword-defaulted":    edit("a default holds what is below", "has a default", `"n":{"description":"old n"`, `"n":{"maximum":1`),
		"items-gone":           edit("items stay", "items", `"type":"array","items":{"type":"string"}`, `"type":"array"`),

		"default":            edit("a default is of the type", "", `"enum":["x","y"]`, `"default":"x"`),
		"default-enum":       edit("and one of the values", "", `"enum":["x","y"]`, `"default":"x","enum":["x","y"]`),
		"default-not-enum":   edit("or it is refused", "the default", `"enum":["x","y"]`, `"default":"z","enum":["x","y"]`),
		"default-type":       edit("so is one of another type", "the default", `"default":"x"`, `"default":1`),
		"default-pattern":    edit("with a pattern none is judged", "the default", `"default":"x"`, `"default":"x","pattern":"x"`),
		"default-number":     added("numbers have bounds", "", `{"default":3,"format":"int32","maximum":5,"minimum":1,"type":"integer"}`),
		"default-large":      added("and are in them", "the default", `{"default":6,"maximum":5,"type":"integer"}`),
		"default-small":      added("both", "the default", `{"default":0,"minimum":1,"type":"integer"}`),
		"default-bits":       added("and in their format", "the default", `{"default":4294967296,"format":"int32","type":"integer"}`),
		"default-bound-bits": added("and so are the bounds", "the default", `{"default":1,"format":"int32","maximum":4294967296,"type":"integer"}`),
		"default-bound-half": added("which are whole", "the default", `{"default":1,"maximum":1.5,"type":"integer"}`),
		"default-object":     added("defaults with parts are not judged", "the default", `{"default":{},"type":"object"}`),
		"default-of-values":  added("nor those that nobody applies", "the default", `{"type":"object","additionalProperties":{"type":"object","properties":{"x":{"default":"x","type":"string"}}}}`),
		"default-gone":       edit("a default may go", "", `"default":"x",`, ``),

		"list-type":       edit("a type of lists", "", `"names":{"type":"array"`, `"names":{"type":"array","x-kubernetes-list-type":"set"`),
		"list-type-odd":   edit("of three", "x-kubernetes-list-type: has a value", `"names":{"type":"array"`, `"names":{"type":"array","x-kubernetes-list-type":"bag"`),
		"list-type-array": edit("is of an array", "is no array", `"labels":{"type":"object"`, `"labels":{"type":"object","x-kubernetes-list-type":"atomic"`),
		"list-keys":       edit("keys are of a map", "keys do not go", `"names":{"type":"array"`, `"names":{"type":"array","x-kubernetes-list-map-keys":["k"]`),
		"list-keyless":    edit("which has some", "keys do not go", `"names":{"type":"array"`, `"names":{"type":"array","x-kubernetes-list-type":"map"`),
		"list-key":        edit("that are required", "a key of the map", `["k"],"x-kubernetes-list-type"`, `["k","v"],"x-kubernetes-list-type"`),
		"list-key-twice":  edit("and differ", "a key of the map", `["k"],"x-kubernetes-list-type"`, `["k","k"],"x-kubernetes-list-type"`),
		"set-of-objects":  added("members of a set are scalars", "not known to be scalars", `{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"set"}`),
		"map-of-texts":    added("those of a map are objects", "no objects with keys", `{"type":"array","items":{"type":"string"},"x-kubernetes-list-map-keys":["k"],"x-kubernetes-list-type":"map"}`),
		"map-type":        edit("a type of maps", "", `"labels":{"type":"object"`, `"labels":{"type":"object","x-kubernetes-map-type":"atomic"`),
		"map-type-array":  edit("is of an object", "is no object", `"names":{"type":"array"`, `"names":{"type":"array","x-kubernetes-map-type":"atomic"`),

		"rules":         {"a schema with rules is not judged", ruled, []string{`"old"`, `"new"`}, "has rules"},
		"rules-come":    edit("nor is one that gets some", "has rules", `"a":{`, `"a":{"x-kubernetes-validations":[{"rule":"true"}],`),
		"rules-columns": {"columns beside it are", ruled, []string{`"name":"A"`, `"name":"B"`}, ""},
		"selectable":    {"fields to select by are of the schema", selected, []string{`"old"`, `"new"`}, "selectableFields"},

		"column":          edit("a column", "", `"name":"A"`, `"name":"B","priority":1,"format":"date-time","description":"x"`),
		"columns-gone":    edit("or none", "", `"additionalPrinterColumns":[{"jsonPath":".spec.a","name":"A","type":"string"}],`, ``),
		"columns-null":    edit("or no list", "no list of columns", `[{"jsonPath":".spec.a","name":"A","type":"string"}]`, `null`),
		"column-path":     edit("with a path", "would refuse the column", `".spec.a"`, `"spec.a"`),
		"column-type":     edit("a type", "would refuse the column", `"type":"string"}],"name"`, `"type":"x"}],"name"`),
		"column-format":   edit("a format", "would refuse the column", `"name":"A"`, `"format":"x","name":"A"`),
		"column-priority": edit("a priority", "priority", `"name":"A"`, `"name":"A","priority":4294967296`),
		"column-field":    edit("and nothing else", "no field of a column", `"name":"A"`, `"name":"A","x":"y"`),
		"column-number":   edit("in texts", "name is no text", `"name":"A"`, `"name":1`),

		"short-names":     edit("short names", "", `"plural"`, `"shortNames":["th"],"plural"`),
		"short-names-bad": edit("are labels", "no list of short names", `"plural"`, `"shortNames":["T H"],"plural"`),
		"kind":            edit("names stay", "spec.names.kind", `"kind":"Thing"`, `"kind":"Other"`),
		"scope":           edit("so does the scope", "spec.scope", `"Namespaced"`, `"Cluster"`),
		"served":          edit("and what is served", "served", `"served":true`, `"served":false`),
		"subresources":    edit("and subresources", "subresources", `"served":true`, `"served":true,"subresources":{"status":{}}`),
		"conversion":      edit("and conversion", "spec.conversion", `"scope"`, `"conversion":{"strategy":"None"},"scope"`),
		"version":         edit("a version has a name", "other names", `"name":"v1"`, `"name":"v2"`),
		"version-new":     edit("no version comes", "added or removed", `"versions":[`, `"versions":[{"name":"v0"},`),
		"schema-gone":     edit("a schema stays", "schema", `"schema":{"openAPIV3Schema"`, `"schema":{"other"`),
		"unpruned": {"objects are pruned", strings.Replace(crd, `"scope"`, `"preserveUnknownFields":true,"scope"`, 1),
			[]string{`"old"`, `"new"`}, "preserveUnknownFields"},
		"pruned": {"which may be said", strings.Replace(crd, `"scope"`, `"preserveUnknownFields":false,"scope"`, 1),
			[]string{`"old"`, `"new"`}, ""},
		"large":      {"definitions are large", large, []string{`"app":"x"`, `"app":"y"`}, ""},
		"very-large": edit("but not endless", "are not judged", `"old"`, `"`+strings.Repeat("x", mostBytesOfDefinition)+`"`),
	}
}

func TestJudgeDefinition(t *testing.T) { judgeAll(t, definitionCases()) }

// BenchmarkDefinition is of an upgrade of a definition of 400 KB, of which a description and a
// property change, beside what decoding both manifests costs.
func BenchmarkDefinition(b *testing.B) {
	var more strings.Builder
	for i := 0; more.Len() < 400_000; i++ {
		fmt.Fprintf(&more, `"p%d":{"description":"%s","type":"object","properties":{"x":{"type":"string","enum":["a","b"]},"y":{"type":"array","items":{"type":"string"}}}},`, i, strings.Repeat("words ", 20))
	}
	before := []byte(strings.Replace(crd, `"a":{`, more.String()+`"a":{`, 1))
	after := []byte(strings.NewReplacer(`"old"`, `"new"`, `"a":{`, `"added":{"type":"string"},"a":{`).Replace(string(before)))
	ref := refOf(b, crd)
	b.Run("judge", func(b *testing.B) {
		for b.Loop() {
			if v := Judge(ref, before, after); v.Unknown != "" {
				b.Fatal(v.Unknown)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := decoded(before); err != nil {
				b.Fatal(err)
			}
			if _, err := decoded(after); err != nil {
				b.Fatal(err)
			}
		}
	})
}
