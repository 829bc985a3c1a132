package run

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/store"
)

// TestRowsAreRead: all encoded rows can be decoded, and the newest rows are unchanged. A single row
// that is too large is not written.
func TestRowsAreRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var rows []Row
		for number := range rapid.Int64Range(1, 4).Draw(r, "rows") {
			size := rapid.IntRange(0, 1000).Draw(r, "size")
			if rapid.IntRange(0, 15).Draw(r, "large") == 7 {
				size += maxRecordBytes - 900
			}
			rows = append(rows, Row{Plan: "uid", Number: 10 - number, Body: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)})
		}
		record, err := encode(rows)
		if err != nil {
			if !errors.As(err, new(*store.TooLargeError)) || len(rows[0].Body) < maxRecordBytes-900 {
				r.Fatalf("refused: %v", err)
			}
			return
		}
		got, err := Decode("/key", record)
		if err != nil || len(got) == 0 {
			r.Fatalf("it was encoded and gives %d rows, error %v", len(got), err)
		}
		for i := range got {
			if got[i].Number != rows[i].Number || string(got[i].Body) != string(rows[i].Body) {
				r.Fatalf("row %d comes back changed", i)
			}
		}
	})
}
