package probe

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Union returns the union of both in a canonical form: fields are sorted, without duplicates and
// without fields inside other fields.
func (r Reads) Union(other Reads) Reads {
	if r.Whole || other.Whole {
		return Reads{Whole: true}
	}
	united := Reads{Status: r.Status || other.Status}
	var fields [][]string
	for _, path := range slices.Concat(r.Fields, other.Fields) {
		switch {
		case len(path) == 0:
		case alwaysKept(path[0]):
			fields = append(fields, []string{"metadata"})
		case len(path) == 1 && path[0] == "status":
			united.Status = true
		default:
			fields = append(fields, path)
		}
	}
	slices.SortFunc(fields, slices.Compare)
	for _, path := range fields {
		// In the sorted list, a path follows directly after the path that contains it.
		contained := len(united.Fields) > 0 && startsWith(path, united.Fields[len(united.Fields)-1])
		if !contained && !(united.Status && path[0] == "status") {
			united.Fields = append(united.Fields, path)
		}
	}
	return united
}

// Trim returns an object with only its metadata and the parts of r. It shares values with the given
// object. A probe with these Reads returns the same verdict for both.
func (r Reads) Trim(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil || r.Whole {
		return object
	}
	trimmed := map[string]any{}
	for key, value := range object.Object {
		if alwaysKept(key) || r.Status && key == "status" {
			trimmed[key] = value
		}
	}
	for _, path := range r.Union(Reads{}).Fields {
		keep(trimmed, object.Object, path)
	}
	return &unstructured.Unstructured{Object: trimmed}
}

// keep copies the value at a path. If a value on the path is no object, that value is copied, so
// that its wrong type stays visible. No path may be inside another kept path (see Union).
func keep(to, from map[string]any, path []string) {
	value, found := from[path[0]]
	if !found {
		return
	}
	inner, isObject := value.(map[string]any)
	if len(path) == 1 || !isObject {
		to[path[0]] = value
		return
	}
	kept, exists := to[path[0]].(map[string]any)
	if !exists {
		kept = map[string]any{}
		to[path[0]] = kept
	}
	keep(kept, inner, path[1:])
}

// alwaysKept reports whether a top-level field is part of every observation.
func alwaysKept(field string) bool {
	return field == "apiVersion" || field == "kind" || field == "metadata"
}

func startsWith(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}
