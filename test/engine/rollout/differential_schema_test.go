//go:build integration

package rollout_test

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// definitions are specimens with what schemas are refused for: two versions, of which one has
// status; lists with keys, sets, defaults, quantifiers, embedded resources, rules, fields
// to select by; a group of Kubernetes.
func definitions() []string {
	const head = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"labels":{"app":"x"},"name":"things.NAME.example.com"},"spec":{"group":"NAME.example.com","names":{"kind":"Thing","plural":"things"},"scope":"Namespaced","versions":[`
	const meta = `"apiVersion":{"description":"old","type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"}`
	const lists = `"keyed":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"},"b":{"default":"x","type":"string"},"c":{"type":"object","properties":{"d":{"type":"string"}}}},"required":["a"]},"x-kubernetes-list-map-keys":["a","b"],"x-kubernetes-list-type":"map"},` +
		`"set":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},"plain":{"type":"array","items":{"type":"object","properties":{"e":{"type":"integer","minimum":1}}}},` +
		`"labels":{"type":"object","additionalProperties":{"type":"string"}},"atoms":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"f":{"type":"boolean"}}}`
	const values = `"level":{"default":"low","enum":["low","high"],"type":"string"},"replicas":{"default":1,"format":"int32","maximum":9,"minimum":0,"type":"integer"},"ratio":{"type":"number"},` +
		`"size":{"anyOf":[{"type":"integer"},{"type":"string"}],"pattern":"^[0-9]+$","x-kubernetes-int-or-string":true},"any":{"x-kubernetes-preserve-unknown-fields":true},` +
		`"defaulted":{"default":{"g":"x"},"type":"object","properties":{"g":{"type":"string"},"h":{"type":"string"}}}`
	const quantified = `"either":{"type":"object","properties":{"i":{"type":"string"},"j":{"type":"string"}},"oneOf":[{"required":["i"]},{"properties":{"j":{"minLength":1}},"required":["j"]}]},` +
		`"template":{"type":"object","properties":{"metadata":{"type":"object"},"spec":{"type":"object","properties":{"k":{"type":"string"}}},"kind":{"type":"string"},"apiVersion":{"type":"string"}},"x-kubernetes-embedded-resource":true}`
	const columns = `"additionalPrinterColumns":[{"jsonPath":".spec.level","name":"Level","type":"string"},{"jsonPath":".metadata.creationTimestamp","name":"Age","type":"date"}],`
	schema := func(spec string) string {
		return `"schema":{"openAPIV3Schema":{"description":"old","type":"object","required":["spec"],"properties":{` + meta + `,"spec":{"description":"old","type":"object","properties":{` + spec + `}},"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}}`
	}
	return []string{
		head + `{"name":"v1",` + columns + schema(lists) + `,"served":true,"storage":true,"subresources":{"status":{}}}]}}`,
		strings.NewReplacer("NAME.example.com", "NAME.k8s.io", `"labels":{"app"`, `"annotations":{"api-approved.kubernetes.io":"unapproved"},"labels":{"app"`).Replace(head) + `{"name":"v1",` + schema(values) + `,"served":true,"storage":true}]}}`,
		head + `{"name":"v1",` + columns + schema(values) + `,"served":true,"storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}}},{"name":"v1beta1",` + schema(lists) + `,"served":true,"storage":false}]}}`,
		head + `{"name":"v1",` + schema(quantified+`,`+values) + `,"served":true,"storage":true}]}}`,
		head + `{"name":"v1",` + schema(lists) + `,"served":true,"storage":true,"subresources":{"status":{}}},{"name":"v2",` + schema(lists) + `,"served":true,"storage":false}]}}`,
		head + `{"name":"v1",` + columns + schema(values) + `,"selectableFields":[{"jsonPath":".spec.level"}],"served":true,"storage":true},{"name":"v2",` + schema(values) + `,"selectableFields":[{"jsonPath":".spec.level"}],"served":true,"storage":false}]}}`,
		head + `{"name":"v1",` + columns + schema(`"ruled":{"type":"object","properties":{"l":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self == oldSelf"}]},"m":{"type":"string"}`) + `,"served":true,"storage":true}]}}`,
	}
}

// definition changes what new versions of definitions change: schemas, columns, names.
func (m mutation) definition(body map[string]any) {
	spec, _ := body["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return
	}
	version, _ := versions[m.IntN(len(versions))].(map[string]any)
	schema, _ := version["schema"].(map[string]any)
	root, _ := schema["openAPIV3Schema"].(map[string]any)
	if root == nil {
		return
	}
	switch m.IntN(12) {
	case 0:
		names, _ := spec["names"].(map[string]any)
		if names == nil {
			return
		}
		names[[]string{"shortNames", "categories", "singular", "listKind"}[m.IntN(4)]] = []any{[]any{"th"}, []any{"a", "b"}, []any{"A B"}, "thinglet", m.value()}[m.IntN(5)]
	case 1:
		column := map[string]any{"name": "New", "type": []string{"string", "integer", "date", "x"}[m.IntN(4)], "jsonPath": []string{".spec.a", ".", "spec", ".spec.list[0].x", ""}[m.IntN(5)]}
		if m.IntN(3) == 0 {
			column[[]string{"format", "priority", "description", "name"}[m.IntN(4)]] = []any{"int32", int64(1), "x", m.value()}[m.IntN(4)]
		}
		columns, _ := version["additionalPrinterColumns"].([]any)
		version["additionalPrinterColumns"] = append(slices.Clone(columns), column)
	default:
		m.schema(root, m.IntN(6))
	}
}

// schema changes a schema at some depth.
func (m mutation) schema(at map[string]any, depth int) {
	properties, _ := at["properties"].(map[string]any)
	var children []map[string]any
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if child, is := properties[name].(map[string]any); is {
			children = append(children, child)
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if child, is := at[name].(map[string]any); is {
			children = append(children, child)
		}
	}
	if depth > 0 && len(children) > 0 {
		m.schema(children[m.IntN(len(children))], depth-1)
		return
	}
	names := slices.Sorted(maps.Keys(properties))
	switch m.IntN(6) {
	case 0, 1:
		if properties == nil {
			properties = map[string]any{}
			at["properties"] = properties
		}
		properties[m.property()] = m.fragment()
	case 2:
		if len(names) > 0 {
			delete(properties, names[m.IntN(len(names))])
		}
	case 3:
		at["description"] = []any{"new", "", m.value()}[m.IntN(3)]
	default:
		keyword := m.keyword()
		if _, set := at[keyword]; set && m.IntN(2) == 0 {
			delete(at, keyword)
			return
		}
		at[keyword] = m.keywordValue(keyword)
	}
}

func (m mutation) property() string {
	return []string{"a", "b", "g", "i", "new", "new2", "metadata", "kind", "spec", "x.y", "-", "replicas", "é", strings.Repeat("k", 1030)}[m.IntN(14)]
}

func (m mutation) keyword() string {
	return []string{"required", "enum", "default", "pattern", "format", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "maxProperties", "exclusiveMinimum", "nullable", "type", "title",
		"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource", "x-kubernetes-validations",
		"additionalProperties", "items", "anyOf", "uniqueItems", "multipleOf", "x-unknown"}[m.IntN(29)]
}

// keywordValue is mostly one of the right type.
func (m mutation) keywordValue(keyword string) any {
	if m.IntN(6) == 0 {
		return m.value()
	}
	numbers := []any{int64(0), int64(1), int64(5), int64(-1), 1.5, int64(1) << 40}
	var values []any
	switch keyword {
	case "required", "x-kubernetes-list-map-keys":
		values = []any{[]any{"a"}, []any{"a", "b"}, []any{"a", "a"}, []any{}, []any{"spec"}, []any{"missing"}}
	case "enum":
		values = []any{[]any{"low"}, []any{"low", "high", "new"}, []any{int64(1), 2.5, true}, []any{nil}, []any{"a", "a"}, []any{}}
	case "default":
		values = []any{"low", "x", int64(1), int64(20), true, 1.5, map[string]any{}, []any{}, map[string]any{"g": "y"}, ""}
	case "pattern":
		values = []any{"^[a-z]+$", "(", `\p{L}`, `\p{Letter}`, "", "a{1,2000}", "(?<n>a)"}
	case "format":
		values = []any{"int32", "int64", "date-time", "email", "unknown", ""}
	case "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "maxProperties", "multipleOf":
		values = numbers
	case "type":
		values = []any{"string", "object", "array", "integer", "number", "boolean", "null", "x"}
	case "x-kubernetes-list-type", "x-kubernetes-map-type":
		values = []any{"atomic", "set", "map", "granular", "x"}
	case "x-kubernetes-validations":
		values = []any{[]any{map[string]any{"rule": "true"}}, []any{map[string]any{"rule": "x"}}}
	case "additionalProperties", "items":
		values = []any{m.fragment(), true}
	case "anyOf":
		values = []any{[]any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}, []any{map[string]any{"required": []any{"a"}}}, []any{map[string]any{"type": "string"}}}
	default:
		values = []any{true, false}
	}
	return runtime.DeepCopyJSONValue(values[m.IntN(len(values))])
}

// fragment is a schema that is mostly good, with a few keywords more.
func (m mutation) fragment() map[string]any {
	schema := []map[string]any{
		{"type": "string"}, {"type": "integer", "format": "int32"}, {"type": "number"}, {"type": "boolean"},
		{"type": "object"}, {"type": "array"}, {},
		{"x-kubernetes-int-or-string": true}, {"x-kubernetes-preserve-unknown-fields": true},
		{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}, "x-kubernetes-int-or-string": true},
	}[m.IntN(10)]
	switch schema["type"] {
	case "object":
		if m.IntN(3) == 0 {
			schema["additionalProperties"] = m.fragment()
		} else {
			schema["properties"] = map[string]any{"a": m.fragment(), m.property(): map[string]any{"type": "string"}}
		}
	case "array":
		if m.IntN(8) > 0 {
			schema["items"] = m.fragment()
		}
		if m.IntN(3) == 0 {
			schema["x-kubernetes-list-type"] = []string{"atomic", "set", "map"}[m.IntN(3)]
			schema["x-kubernetes-list-map-keys"] = []any{"a"}
			if schema["x-kubernetes-list-type"] != "map" {
				delete(schema, "x-kubernetes-list-map-keys")
			} else if items, is := schema["items"].(map[string]any); is && m.IntN(2) == 0 {
				items["required"] = []any{"a"}
			}
		}
	}
	for range m.IntN(3) {
		keyword := m.keyword()
		schema[keyword] = m.keywordValue(keyword)
	}
	return schema
}
