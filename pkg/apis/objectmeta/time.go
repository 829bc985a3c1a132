package objectmeta

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxYear is the last year of a time in JSON, and 0 the first year. A time outside of these years
// can be written, but not read. Clients can reach such a time with a zone offset.
const maxYear = 9999

// validateTimes checks the times that clients can set. Times from a record are valid, because the
// record could be read.
func validateTimes(metadata *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	judge := func(at *metav1.Time, path *field.Path) {
		if at == nil || at.IsZero() {
			return
		}
		if year := at.UTC().Year(); year < 0 || year > maxYear {
			errs = append(errs, field.Invalid(path, at.Format(time.RFC3339), "must be in a year from 0 to 9999, in UTC"))
		}
	}
	judge(&metadata.CreationTimestamp, path.Child("creationTimestamp"))
	judge(metadata.DeletionTimestamp, path.Child("deletionTimestamp"))
	for i := range metadata.ManagedFields {
		if len(errs) == maxTimeErrors {
			break
		}
		judge(metadata.ManagedFields[i].Time, path.Child("managedFields").Index(i).Child("time"))
	}
	return errs
}

// maxTimeErrors bounds the errors about times in an answer.
const maxTimeErrors = 8
