package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/note"
)

// TestAddNotes: the notes of a caller precede other notes of their severity, and count against the
// limit.
func TestAddNotes(t *testing.T) {
	told := func(severity review.Severity, message string) review.Note {
		return review.Note{Severity: severity, Message: message}
	}
	report := Report{
		Notes:     []review.Note{told(note.Critical, "a"), told(note.Warning, "b"), told(note.Info, "c")},
		Truncated: Truncation{Notes: 2},
	}
	report.AddNotes([]review.Note{told(note.Info, "d"), told(note.Warning, "e")}, Limits{TotalNotes: 4})
	var got []string
	for _, n := range report.Notes {
		got = append(got, n.Message)
	}
	if diff := cmp.Diff([]string{"a", "e", "b", "d"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if report.Truncated.Notes != 3 {
		t.Errorf("%d notes are said to be left out, want the 2 from before and 1 more", report.Truncated.Notes)
	}
}
