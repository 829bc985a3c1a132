package managedfields

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Contains reports whether a live value has all wanted fields. It uses no schema: lists of maps
// match in any order, other lists must be equal, and empty values may be absent, because servers
// drop them.
func Contains(wanted, live any) bool {
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
			if !Contains(value, have[key]) {
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
			if !slices.ContainsFunc(have, func(other any) bool { return Contains(item, other) }) {
				return false
			}
		}
		return true
	default:
		return equality.Semantic.DeepEqual(wanted, live)
	}
}

// empty reports whether value is null or a zero value of JSON.
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
