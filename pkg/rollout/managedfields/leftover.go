package managedfields

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// WithLeftovers returns managedFields in which the leftovers belong to manager, so that its next
// apply removes them. It returns nil without leftovers, or if manager did not apply the object.
//
// Leftovers are defaults that the API server filled in for an earlier manifest and that block the
// next one, such as spec.strategy.rollingUpdate of a Deployment that becomes Recreate. Server-side
// apply keeps them, because no manager has them. A leftover is a map that the manifest omits,
// inside a map that the manifest has, without a field of another manager. The API server then fills
// in its present defaults again.
func WithLeftovers(wanted map[string]any, live *unstructured.Unstructured, manager string) []metav1.ManagedFieldsEntry {
	all, theirs := &fieldpath.Set{}, &fieldpath.Set{}
	entries := live.GetManagedFields()
	mine := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return IsApplyOf(e, manager) })
	if mine < 0 {
		return nil
	}
	for _, entry := range entries {
		set, err := FieldSet(entry)
		if err != nil {
			return nil
		}
		all = all.Union(set)
		if !IsApplyOf(entry, manager) && entry.Subresource != "status" {
			theirs = theirs.Union(set)
		}
	}
	search := leftoverSearch{claimed: &fieldpath.Set{}}
	for name, value := range wanted {
		below, isMap := value.(map[string]any)
		have, _ := live.Object[name].(map[string]any)
		if isMap && have != nil && name != "metadata" && name != "status" {
			element := fieldpath.PathElement{FieldName: &name}
			search.in(below, have, fieldpath.Path{element}, all.WithPrefix(element), theirs.WithPrefix(element))
		}
	}
	ours, err := FieldSet(entries[mine])
	if err != nil || search.claimed.Empty() {
		return nil
	}
	raw, err := ours.Union(search.claimed).ToJSON()
	if err != nil {
		return nil
	}
	fields := slices.Clone(entries)
	fields[mine].FieldsV1 = metav1.NewFieldsV1(string(raw))
	return fields
}

// leftoverSearch collects the leaves of leftovers.
type leftoverSearch struct{ claimed *fieldpath.Set }

// in finds leftovers in a map. The parameter all has the fields of that map that any manager owns;
// theirs has the fields that other managers own.
func (s leftoverSearch) in(wanted, live map[string]any, path fieldpath.Path, all, theirs *fieldpath.Set) {
	for name, value := range live {
		element := fieldpath.PathElement{FieldName: &name}
		here := append(path.Copy(), element)
		want, wants := wanted[name]
		switch value := value.(type) {
		case map[string]any:
			below, isMap := want.(map[string]any)
			switch {
			case !wants && !has(theirs, element):
				s.claim(here, value)
			case isMap:
				s.in(below, value, here, all.WithPrefix(element), theirs.WithPrefix(element))
			}
		case []any:
			items, _ := want.([]any)
			s.inItems(items, value, here, all.WithPrefix(element), theirs.WithPrefix(element))
		}
	}
}

func (s leftoverSearch) inItems(wanted, live []any, path fieldpath.Path, all, theirs *fieldpath.Set) {
	for i, item := range live {
		have, isMap := item.(map[string]any)
		element, known := elementOf(item, i, all)
		if !isMap || !known || element.Key == nil {
			continue
		}
		at := slices.IndexFunc(wanted, func(want any) bool { return matches(want, element) })
		if at < 0 {
			continue
		}
		if want, ok := wanted[at].(map[string]any); ok {
			s.in(want, have, append(path.Copy(), element), all.WithPrefix(element), theirs.WithPrefix(element))
		}
	}
}

func (s leftoverSearch) claim(path fieldpath.Path, value any) {
	fields, isMap := value.(map[string]any)
	if !isMap || len(fields) == 0 {
		s.claimed.Insert(path)
		return
	}
	for name, below := range fields {
		s.claim(append(path.Copy(), fieldpath.PathElement{FieldName: &name}), below)
	}
}

// has reports whether a set contains a field, or a field below it.
func has(set *fieldpath.Set, element fieldpath.PathElement) bool {
	below, nested := set.Children.Get(element)
	return set.Members.Has(element) || nested && !below.Empty()
}
