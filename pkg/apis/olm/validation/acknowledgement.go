package validation

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// maxAcknowledgements bounds the acknowledged findings of one revision.
const maxAcknowledgements = 100

var findingID = regexp.MustCompile("^[0-9a-f]{10}$")

// validateAcknowledgements checks new and changed acknowledgements of findings.
func validateAcknowledgements(updated, old *olm.ClusterExtensionRevision) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata", "annotations")
	all, added := 0, false
	for _, key := range slices.Sorted(maps.Keys(updated.Annotations)) {
		id, acknowledges := strings.CutPrefix(key, v1alpha1.AcknowledgeFindingPrefix)
		if !acknowledges {
			continue
		}
		all++
		value := updated.Annotations[key]
		if was, known := old.Annotations[key]; known && was == value {
			continue
		}
		added = true
		if !findingID.MatchString(id) {
			errs = append(errs, field.Invalid(path.Key(key), id, "must end with the id of a finding of kubectl get upgradereadiness -o yaml; findings that block have none"))
			continue
		}
		if _, _, err := olm.ParseAcknowledgement(value); err != nil {
			errs = append(errs, field.Invalid(path.Key(key), value, err.Error()))
		}
	}
	if added && all > maxAcknowledgements {
		errs = append(errs, field.TooMany(path.Key(v1alpha1.AcknowledgeFindingPrefix+"*"), all, maxAcknowledgements))
	}
	return errs
}
