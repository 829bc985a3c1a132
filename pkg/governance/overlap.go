package governance

import (
	"reflect"
	"slices"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Overlap returns the fields that two manifests of one object set to different values, in order. A
// list is one field, because its items cannot be assigned without its schema. Equal values are
// shared, as in server-side apply.
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

// isMark reports whether a field is an annotation that has another value for each plan.
func isMark(path, key string) bool {
	return path == ".metadata.annotations" && (key == v1alpha1.GovernedByAnnotation || key == v1alpha1.AppliedHashAnnotation || manifest.IsReserved(key))
}

// MayConflict reports whether a plan must be compared with another plan. A plan that waits for its
// approval is compared with every computed plan. A scheduled plan is not compared with plans that
// wait for approval, so that users without the right to approve cannot stop it.
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
