package window

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The bounds of a duration.
const (
	MinDuration = time.Minute
	MaxDuration = 31 * 24 * time.Hour
)

// Validate returns the errors in a recurring window. Its fields are schedule, timeZone and duration
// below path.
func Validate(schedule, zone string, lasts time.Duration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, err := Schedule(schedule); err != nil {
		errs = append(errs, field.Invalid(path.Child("schedule"), schedule, err.Error()))
	}
	if _, err := Zone(zone); err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), zone, err.Error()))
	}
	if lasts < MinDuration || lasts > MaxDuration {
		errs = append(errs, field.Invalid(path.Child("duration"), lasts.String(), "must be 1m to 744h"))
	}
	return errs
}
