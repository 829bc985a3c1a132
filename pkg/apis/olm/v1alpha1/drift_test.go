package v1alpha1

import (
	"strings"
	"testing"
	"time"
)

func TestReportsDriftUntil(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]string{
		"2026-11-28T12:00:01Z":      "",
		"2026-12-05T12:00:00Z":      "",
		"2026-12-05T13:00:00+01:00": "",
		"2026-12-05T12:00:01Z":      "at most seven days ahead, until 2026-12-05T12:00:00Z",
		"2026-11-28T12:00:00Z":      "must be in the future, and it is 2026-11-28T12:00:00Z",
		"tomorrow":                  "RFC 3339, such as 2026-11-29T12:00:00Z",
		"":                          "RFC 3339",
	} {
		_, err := ReportsDriftUntil(value, now)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", value, err, want)
		}
	}
}
