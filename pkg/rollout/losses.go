package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// loss is a field of ours that someone else changed. It names no values: they may
// be secret.
type loss struct {
	// Path such as ".spec.replicas".
	Path string
	// Manager who has the field now; empty when the field is gone, or when
	// managedFields were wiped and nobody can be named.
	Manager string
	// Gone is true when the field is not there any more.
	Gone bool
}

func (l loss) String() string {
	switch {
	case l.Gone:
		return l.Path + " was removed"
	case l.Manager == "":
		return l.Path + " was changed, and no manager has it"
	default:
		return fmt.Sprintf("%s was changed by %s", l.Path, l.Manager)
	}
}

// lostFields compares what is wanted with a live object and names the differences
// and, from managedFields, who made them.
func lostFields(wanted map[string]any, live *unstructured.Unstructured, manager string) []loss {
	ours, status := &fieldpath.Set{}, &fieldpath.Set{}
	others := map[string]*fieldpath.Set{}
	for _, entry := range live.GetManagedFields() {
		set, err := fieldSet(entry)
		if err != nil {
			continue
		}
		if entry.Subresource == "status" {
			status = status.Union(set)
			continue
		}
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply {
			ours = set
			continue
		}
		if have, ok := others[entry.Manager]; ok {
			set = have.Union(set)
		}
		others[entry.Manager] = set
	}
	found := map[string]loss{}
	for name, set := range others {
		set.Leaves().Iterate(func(path fieldpath.Path) {
			want, wants := resolve(wanted, path)
			have, has := resolve(live.Object, path)
			if !ours.Has(path) && wants && has && !equality.Semantic.DeepEqual(want, have) {
				found[path.String()] = loss{Path: path.String(), Manager: name}
			}
		})
	}
	for _, one := range unclaimed(wanted, live.Object, ours.Union(status), "") {
		if _, ok := found[one.Path]; !ok {
			found[one.Path] = one
		}
	}
	losses := slices.AppendSeq(make([]loss, 0, len(found)), maps.Values(found))
	slices.SortFunc(losses, func(a, b loss) int { return strings.Compare(a.Path, b.Path) })
	return losses
}

func fieldSet(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(entry.FieldsV1.GetRawReader())
}

// resolve follows a path of managedFields into an object.
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

// matches is true for the list item that a path element names.
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

// subset is true when everything that is wanted is there. It knows no schema:
// lists of maps match in any order, other lists must be equal, and what is empty
// may be left out, as typed servers do.
func subset(wanted, live any) bool {
	if wanted == nil || live == nil && empty(wanted) {
		return true
	}
	switch want := wanted.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range want {
			if !subset(value, have[key]) {
				return false
			}
		}
		return true
	case []any:
		have, _ := live.([]any)
		if !ofMaps(want) {
			return equality.Semantic.DeepEqual(want, have) || len(want)+len(have) == 0
		}
		for _, item := range want {
			if !slices.ContainsFunc(have, func(other any) bool { return subset(item, other) }) {
				return false
			}
		}
		return true
	default:
		return equality.Semantic.DeepEqual(wanted, live)
	}
}

// empty is true for null and the zero values of JSON.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return v == false || v == "" || v == int64(0) || v == float64(0)
	}
}

func ofMaps(items []any) bool {
	return len(items) > 0 && !slices.ContainsFunc(items, func(item any) bool {
		_, ok := item.(map[string]any)
		return !ok
	})
}

// unclaimed lists the paths of maps that are wanted and not there at all, and those
// of other values that differ and are in no entry of kept. It does not look into
// lists. What is empty and in an entry was not lost: the server does not store it.
func unclaimed(wanted, live map[string]any, kept *fieldpath.Set, path string) []loss {
	var out []loss
	for key, want := range wanted {
		element := fieldpath.PathElement{FieldName: &key}
		have, there := live[key]
		below, isMap := want.(map[string]any)
		haveMap, _ := have.(map[string]any)
		switch {
		case want == nil, !there && empty(want) && kept.Members.Has(element):
		case !there:
			out = append(out, loss{Path: path + "." + key, Gone: true})
		case isMap && haveMap != nil:
			out = append(out, unclaimed(below, haveMap, kept.WithPrefix(element), path+"."+key)...)
		case !isMap && isScalar(want) && !kept.Members.Has(element) && want != have:
			out = append(out, loss{Path: path + "." + key})
		}
	}
	return out
}

// isScalar is true for what can be compared with ==.
func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	default:
		return true
	}
}
