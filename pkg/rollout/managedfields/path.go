package managedfields

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// spell returns a path in the spelling of package diff.
func spell(path fieldpath.Path) string {
	var out strings.Builder
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			out.WriteString(spellField(*element.FieldName))
		case element.Key != nil:
			keys := make([]string, 0, len(*element.Key))
			for _, field := range *element.Key {
				keys = append(keys, field.Name+"="+spellValue(field.Value))
			}
			out.WriteString("[" + strings.Join(keys, ",") + "]")
		case element.Value != nil:
			out.WriteString("[=" + spellValue(*element.Value) + "]")
		case element.Index != nil:
			out.WriteString("[" + strconv.Itoa(*element.Index) + "]")
		}
	}
	return out.String()
}

func spellField(name string) string {
	if manifest.IsIdentifier(name) {
		return "." + name
	}
	return "[" + quoted(name) + "]"
}

func spellValue(v value.Value) string {
	return quoted(v.Unstructured())
}

// quoted returns JSON without the escapes for HTML.
func quoted(v any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return `"?"` // a value from JSON can be encoded as JSON
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func resolve(object any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			fields, _ := object.(map[string]any)
			next, ok := fields[*element.FieldName]
			if !ok {
				return nil, false
			}
			object = next
		case element.Key != nil, element.Value != nil, element.Index != nil:
			items, _ := object.([]any)
			i := slices.IndexFunc(items, func(item any) bool { return matches(item, element) })
			if element.Index != nil {
				i = *element.Index
			}
			if i < 0 || i >= len(items) {
				return nil, false
			}
			object = items[i]
		}
	}
	return object, true
}

// matches reports whether a path element names the list item.
func matches(item any, element fieldpath.PathElement) bool {
	if element.Value != nil {
		return value.Equals(value.NewValueInterface(item), *element.Value)
	}
	fields, ok := item.(map[string]any)
	if !ok || element.Key == nil {
		return false
	}
	for _, key := range *element.Key {
		have, ok := fields[key.Name]
		if !ok || !value.Equals(value.NewValueInterface(have), key.Value) {
			return false
		}
	}
	return true
}

// Sets reports whether a manifest sets the field at a path, in the spelling of TakenBetween and
// WouldTake. It returns false for paths with elements of sets, indexes, or keys with brackets or
// commas.
func Sets(wanted map[string]any, path string) bool {
	field, err := manifest.ParseFieldPath(path)
	if err != nil {
		return false
	}
	for _, step := range field {
		for i := range step.Keys {
			// Paths quote text, to distinguish it from a number.
			if unquoted, err := strconv.Unquote(step.Keys[i].Value); err == nil {
				step.Keys[i].Value = unquoted
			}
		}
	}
	return sets(wanted, field)
}

// fieldPathOf converts a path of managedFields to a path in users' spelling. Elements of sets have
// no such path and cannot be yielded.
func fieldPathOf(path fieldpath.Path) (manifest.FieldPath, bool) {
	var out manifest.FieldPath
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			out = append(out, manifest.FieldStep{Field: *element.FieldName})
		case element.Key != nil:
			var step manifest.FieldStep
			for _, key := range *element.Key {
				step.Keys = append(step.Keys, manifest.FieldKey{Name: key.Name, Value: text(key.Value.Unstructured())})
			}
			out = append(out, step)
		default:
			return nil, false
		}
	}
	return out, len(out) > 0
}

// text returns a scalar in users' spelling.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // not a scalar of JSON: no key has it
	}
	return string(raw)
}

func sets(wanted any, field manifest.FieldPath) bool {
	found := false
	visit(wanted, field, func(map[string]any, string) { found = true })
	return found
}

// visit calls do with the map that contains the field, if it exists.
func visit(here any, field manifest.FieldPath, do func(in map[string]any, name string)) {
	step, rest := field[0], field[1:]
	if step.Field != "" {
		fields, _ := here.(map[string]any)
		next, ok := fields[step.Field]
		switch {
		case !ok:
		case len(rest) == 0:
			do(fields, step.Field)
		default:
			visit(next, rest, do)
		}
		return
	}
	items, _ := here.([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		has := func(key manifest.FieldKey) bool {
			have, ok := fields[key.Name]
			return ok && text(have) == key.Value
		}
		if len(rest) > 0 && !slices.ContainsFunc(step.Keys, func(key manifest.FieldKey) bool { return !has(key) }) {
			visit(item, rest, do)
		}
	}
}
