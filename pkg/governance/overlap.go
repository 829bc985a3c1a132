package governance

import (
	"reflect"
	"slices"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Overlap are the fields that two manifests of one object set to different values, in
// order. A list is one field: whose item is whose cannot be told without its schema.
// Both share a field that they set to the same value, as server-side apply has it.
func Overlap(one, other map[string]any) []string {
	var fields []string
	overlap(one, other, "", &fields)
	slices.Sort(fields)
	return fields
}

func overlap(one, other map[string]any, path string, fields *[]string) {
	for key, value := range one {
		against, both := other[key]
		at := path + "." + key
		if !both || reflect.DeepEqual(value, against) || isMark(path, key) {
			continue
		}
		deeper, isMap := value.(map[string]any)
		deeperOther, isMapToo := against.(map[string]any)
		if isMap && isMapToo {
			overlap(deeper, deeperOther, at, fields)
			continue
		}
		*fields = append(*fields, at)
	}
}

// isMark tells of annotations that each plan sets to a value of its own.
func isMark(path, key string) bool {
	return path == ".metadata.annotations" && (key == v1alpha1.GovernedByAnnotation || key == v1alpha1.AppliedHashAnnotation || manifest.IsReserved(key))
}

// MayConflict tells whether a plan has to look at another one: at all that is computed while
// it waits for its approval, and at what is approved from then on, so that nobody keeps an
// approved plan back who cannot approve.
func MayConflict(phase v1alpha1.Phase, other *v1alpha1.ConfigurationPlan) bool {
	switch {
	case !Active(other.Status.Phase) || other.Status.Manifests == "" || other.Status.Phase == v1alpha1.PhaseDrafting:
		return false
	case phase == v1alpha1.PhaseScheduled:
		return other.Status.Phase != v1alpha1.PhaseReviewRequired
	default:
		return true
	}
}
