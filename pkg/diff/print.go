package diff

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/penstock-project/penstock/pkg/diff/printable"
)

// Print writes the report for users: the notes, a line for each changed object, and the unified
// diffs.
func (r Report) Print(w io.Writer) error {
	var b strings.Builder
	for _, note := range r.Notes {
		fmt.Fprintln(&b, note)
	}
	if len(r.Notes) > 0 {
		b.WriteByte('\n')
	}
	r.table(&b)
	for _, change := range r.Changes {
		if change.Unified != "" {
			fmt.Fprintf(&b, "\n%s", change.Unified)
		}
	}
	if left := r.Truncated.String(); left != "" {
		fmt.Fprintf(&b, "\nLeft out: %s.\n", left)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) table(w io.Writer) {
	if len(r.Changes) > 0 {
		table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "CHANGE\tKIND\tNAMESPACE\tNAME\tFIELDS\t+/-")
		for _, c := range r.Changes {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n",
				c.Kind, printable.Line(c.ID.GroupKind().String()), printable.Line(c.Namespace), printable.Line(c.Name), c.fieldsColumn(), c.linesColumn())
		}
		// The writer cannot fail.
		_ = table.Flush()
	}
	fmt.Fprintf(w, "%d added, %d changed, %d removed, %d unchanged\n",
		r.Summary.Added, r.Summary.Changed, r.Summary.Removed, r.Summary.Unchanged)
}

func (c Change) fieldsColumn() string {
	if c.Kind != Changed || c.NotCompared != "" {
		return ""
	}
	return fmt.Sprint(c.FieldCount())
}

func (c Change) linesColumn() string {
	if c.NotCompared != "" {
		return printable.Line(c.NotCompared)
	}
	return fmt.Sprintf("+%d/-%d", c.AddedLines, c.RemovedLines)
}

// String describes the omitted parts; empty if there are none.
func (t Truncation) String() string {
	var parts []string
	for _, part := range []struct {
		count int
		what  string
	}{
		{t.Objects, "comparison of objects"}, {t.Notes, "notes"}, {t.Fields, "field changes"},
		{t.Values, "values of field changes"}, {t.Lines, "lines of unified diffs"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", part.what, part.count))
		}
	}
	return strings.Join(parts, ", ")
}
