package managedfields

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// MostPaths is the largest number of paths that are named for one manager.
const MostPaths = 200

// Taken lists the fields that one manager would lose. Paths contain no values except keys of list
// items and items of sets.
type Taken struct {
	Manager string
	// Subresource of its writes, such as "scale", or empty.
	Subresource string
	// Paths such as `.spec.replicas`, sorted, with keys and indexes in the spelling of package
	// diff.
	Paths []string
	// More is the number of omitted paths.
	More int
}

// TakenBetween compares managedFields before and after an apply by one manager. The server moves a
// field from its manager exactly when the apply changes its value.
func TakenBetween(before, after []metav1.ManagedFieldsEntry, by string) []Taken {
	kept := map[string]*fieldpath.Set{}
	for _, entry := range after {
		if set, err := FieldSet(entry); err == nil {
			kept[keyOf(entry)] = set
		}
	}
	var all []Taken
	for _, entry := range before {
		if entry.Manager == by && entry.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		lost, err := FieldSet(entry)
		if err != nil {
			continue
		}
		if left := kept[keyOf(entry)]; left != nil {
			lost = lost.Difference(left)
		}
		one := Taken{Manager: entry.Manager, Subresource: entry.Subresource}
		lost.Leaves().Iterate(func(path fieldpath.Path) {
			if len(one.Paths) == MostPaths {
				one.More++
				return
			}
			one.Paths = append(one.Paths, spell(path))
		})
		if len(one.Paths) > 0 {
			slices.Sort(one.Paths)
			all = append(all, one)
		}
	}
	return all
}

// WouldTake returns the fields of other managers that an apply by us would change. It cannot
// recognise values that are spelled differently but equal for the server. A field whose path cannot
// be resolved counts as changed.
func WouldTake(wanted map[string]any, live *unstructured.Unstructured, us string) []Taken {
	var all []Taken
	for _, entry := range live.GetManagedFields() {
		set, err := FieldSet(entry)
		if err != nil || entry.Manager == us && entry.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		one := Taken{Manager: entry.Manager, Subresource: entry.Subresource}
		set.Leaves().Iterate(func(path fieldpath.Path) {
			want, wants := resolve(wanted, path)
			if have, has := resolve(live.Object, path); wants && !(has && equality.Semantic.DeepEqual(want, have)) {
				one.Paths = append(one.Paths, spell(path))
			}
		})
		if len(one.Paths) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// Overwritten returns the sorted paths of the fields whose value an apply changes, for an object
// without managedFields. A changed list is one path.
func Overwritten(before, after map[string]any) []string { return overwritten("", before, after) }

func overwritten(path string, before, after map[string]any) []string {
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		here, was := path+spellField(name), before[name]
		now, still := after[name]
		inner, isMap := was.(map[string]any)
		next, staysMap := now.(map[string]any)
		switch {
		case !still || reflect.DeepEqual(was, now):
		case isMap && staysMap:
			paths = append(paths, overwritten(here, inner, next)...)
		default:
			paths = append(paths, here)
		}
	}
	return paths
}
