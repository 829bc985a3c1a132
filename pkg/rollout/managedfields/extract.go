package managedfields

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Extract returns a copy of an object with only the fields in a set. List items with keys keep
// their keys.
func Extract(object map[string]any, set *fieldpath.Set) map[string]any {
	out := map[string]any{}
	for name, field := range object {
		element := fieldpath.PathElement{FieldName: &name}
		if taken, listed := extract(field, element, set); listed {
			out[name] = taken
		}
	}
	return out
}

// extract returns the part of a field or item that is in the set.
func extract(field any, element fieldpath.PathElement, set *fieldpath.Set) (any, bool) {
	below, nested := set.Children.Get(element)
	if !nested {
		return runtime.DeepCopyJSONValue(field), set.Members.Has(element)
	}
	switch field := field.(type) {
	case map[string]any:
		return Extract(field, below), true
	case []any:
		return extractItems(field, below), true
	default: // another version of the object had fields here
		return field, true
	}
}

func extractItems(items []any, set *fieldpath.Set) []any {
	out := []any{}
	for i, item := range items {
		element, found := elementOf(item, i, set)
		if !found {
			continue
		}
		taken, _ := extract(item, element, set)
		fields, isMap := taken.(map[string]any)
		if whole, _ := item.(map[string]any); isMap && element.Key != nil {
			for _, key := range *element.Key {
				fields[key.Name] = whole[key.Name]
			}
		}
		out = append(out, taken)
	}
	return out
}

// elementOf returns the path element by which a set names a list item.
func elementOf(item any, index int, set *fieldpath.Set) (element fieldpath.PathElement, found bool) {
	look := func(one fieldpath.PathElement) {
		if matches(item, one) || one.Index != nil && *one.Index == index {
			element, found = one, true
		}
	}
	set.Members.Iterate(look)
	set.Children.Iterate(look)
	return element, found
}
