package v1alpha1

import (
	"fmt"
	"time"
)

// MaxReportDrift is the longest time for which Penstock reports drift and does not repair it.
const MaxReportDrift = 7 * 24 * time.Hour

// ReportsDriftUntil reads the value of ReportDriftUntilAnnotation. It returns an error if the value
// is not a time, has passed or is too far ahead. Penstock then repairs drift.
func ReportsDriftUntil(value string, now time.Time) (time.Time, error) {
	until, err := time.Parse(time.RFC3339, value)
	latest := now.Add(MaxReportDrift)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("must be a time as in RFC 3339, such as %s", now.Add(24*time.Hour).UTC().Format(time.RFC3339))
	case !now.Before(until):
		return time.Time{}, fmt.Errorf("must be in the future, and it is %s", now.UTC().Format(time.RFC3339))
	case until.After(latest):
		return time.Time{}, fmt.Errorf("must be at most seven days ahead, until %s", latest.UTC().Format(time.RFC3339))
	}
	return until, nil
}
