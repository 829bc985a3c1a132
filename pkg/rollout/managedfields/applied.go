package managedfields

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Applied returns the result of an apply of wanted by manager to a live object. A field is removed
// if manager applied it before, wanted omits it, and no other manager has it.
//
// Applied has no schema. managedFields show which list items have keys, and which maps and lists
// are replaced as a whole. A list that no manager has is replaced. The result may share values with
// both arguments.
func Applied(wanted map[string]any, live *unstructured.Unstructured, manager string) (map[string]any, error) {
	who := owned{&fieldpath.Set{}, &fieldpath.Set{}}
	for _, entry := range live.GetManagedFields() {
		set, err := FieldSet(entry)
		switch {
		case err != nil:
			return nil, err
		case IsApplyOf(entry, manager):
			who.ours = set
		default:
			who.theirs = who.theirs.Union(set)
		}
	}
	return who.mergeFields(live.Object, wanted), nil
}

// owned holds the fields of a manager, and the fields of all other managers, in one part of an
// object.
type owned struct{ ours, theirs *fieldpath.Set }

func (o owned) below(element fieldpath.PathElement) owned {
	return owned{o.ours.WithPrefix(element), o.theirs.WithPrefix(element)}
}

// isAtomic reports whether a value is replaced as a whole: a scalar, or an atomic map or list.
func (o owned) isAtomic(element fieldpath.PathElement) bool {
	below := o.below(element)
	return (o.ours.Members.Has(element) || o.theirs.Members.Has(element)) && below.ours.Empty() && below.theirs.Empty()
}

func (o owned) mergeFields(live, wanted map[string]any) map[string]any {
	merged := make(map[string]any, max(len(live), len(wanted)))
	for name, have := range live {
		want, wants := wanted[name]
		if result, stays := o.merge(have, want, wants, fieldpath.PathElement{FieldName: &name}); stays {
			merged[name] = result
		}
	}
	for name, want := range wanted {
		if _, there := live[name]; !there {
			merged[name] = want
		}
	}
	return merged
}

// merge returns the new value of an existing field or item, and whether it stays.
func (o owned) merge(have, want any, wants bool, element fieldpath.PathElement) (any, bool) {
	below := o.below(element)
	switch {
	case !wants && o.ours.Members.Has(element) && !has(o.theirs, element):
		return nil, false
	case !wants && below.ours.Empty():
		return have, true
	case wants && o.isAtomic(element):
		return want, true
	}
	switch have := have.(type) {
	case map[string]any:
		if fields, isMap := want.(map[string]any); isMap || !wants {
			merged := below.mergeFields(have, fields)
			return merged, wants || len(merged) > 0
		}
	case []any:
		if items, isList := want.([]any); isList || !wants {
			merged := below.mergeItems(have, items, wants)
			return merged, wants || len(merged) > 0
		}
	}
	if wants {
		return want, true
	}
	return have, true
}

// mergeItems merges two lists in the order of server-side apply: the order of wanted, and before
// each common item the preceding items of the object alone.
func (o owned) mergeItems(have, want []any, wants bool) []any {
	keys, isSet := o.listType()
	if len(keys) == 0 && !isSet {
		if wants {
			return want
		}
		return have
	}
	partners, common := make([]int, len(want)), map[int]bool{}
	for i, item := range want {
		if partners[i] = findItem(have, item, keys, common); partners[i] >= 0 {
			common[partners[i]] = true
		}
	}
	merged := []any{}
	for left, right := 0, 0; left < len(have) || right < len(want); {
		rest := partners[right:]
		next := slices.IndexFunc(rest, func(at int) bool { return at >= 0 })
		switch {
		case left < len(have) && !common[left]:
			if item, stays := o.merge(have[left], nil, false, itemElement(have[left], keys)); stays {
				merged = append(merged, item)
			}
			left++
		case left < len(have) && (next < 0 || rest[next] != left):
			left++ // a common item, which has another position in wanted
		default:
			item := want[right]
			if at := partners[right]; at >= 0 {
				item, _ = o.merge(have[at], item, true, itemElement(have[at], keys))
				if at == left {
					left++
				}
			}
			merged = append(merged, item)
			right++
		}
	}
	return merged
}

// listType returns the keys of the items of a list, or that the list is a set. Both results are
// zero for a list that is replaced.
func (o owned) listType() (keys []string, isSet bool) {
	look := func(element fieldpath.PathElement) {
		isSet = isSet || element.Value != nil
		if element.Key != nil && keys == nil {
			for _, key := range *element.Key {
				keys = append(keys, key.Name)
			}
		}
	}
	for _, set := range []*fieldpath.Set{o.ours, o.theirs} {
		set.Members.Iterate(look)
		set.Children.Iterate(look)
	}
	return keys, isSet
}

// itemElement returns the path element of an item, by its keys or, in a set, by its value.
func itemElement(item any, keys []string) fieldpath.PathElement {
	if len(keys) == 0 {
		v := value.NewValueInterface(item)
		return fieldpath.PathElement{Value: &v}
	}
	fields, _ := item.(map[string]any)
	key := value.FieldList{}
	for _, name := range keys {
		key = append(key, value.Field{Name: name, Value: value.NewValueInterface(fields[name])})
	}
	return fieldpath.PathElement{Key: &key}
}

// findItem returns the index of the existing item that a wanted item is merged with, or -1. If the
// wanted item omits a key, the existing item may have any value for it, because the server fills in
// a default. Taken items are skipped.
func findItem(have []any, want any, keys []string, taken map[int]bool) int {
	fields, _ := want.(map[string]any)
	given := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { _, set := fields[key]; return !set })
	element := itemElement(want, given)
	if len(keys) > 0 && len(given) == 0 {
		return -1
	}
	for i, item := range have {
		if !taken[i] && matches(item, element) {
			return i
		}
	}
	return -1
}
