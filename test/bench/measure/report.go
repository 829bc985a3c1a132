package measure

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Report is the output of a run. It prints plain tables that are also valid Markdown.
type Report struct {
	tables   []*Table
	verdicts []Verdict
}

// Table is a table with columns and rows.
type Table struct {
	title   string
	columns []string
	rows    [][]string
}

// Verdict is a target with its measured value.
type Verdict struct {
	What string
	// Target and Measured are texts with units.
	Target, Measured string
	Met              bool
}

// Table returns the table with a title, and creates it on the first call.
func (r *Report) Table(title string, columns ...string) *Table {
	for _, table := range r.tables {
		if table.title == title {
			return table
		}
	}
	table := &Table{title: title, columns: columns}
	r.tables = append(r.tables, table)
	return table
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// AtLeast adds the verdict whether a subject is at least target times as fast as another subject,
// by the median of the ratio.
func (r *Report) AtLeast(what string, target float64, result *Result, subject, peer string) {
	ratio := result.Ratio(peer, subject)
	r.verdicts = append(r.verdicts, Verdict{
		What: what, Target: fmt.Sprintf("%.3g times as fast", target),
		Measured: fmt.Sprintf("%.2f (%.2f to %.2f)", ratio.Median, ratio.Low, ratio.High),
		Met:      ratio.Median >= target,
	})
}

// AtMost adds the verdict whether a number is within its limit.
func (r *Report) AtMost(what string, target, measured float64, unit string) {
	r.verdicts = append(r.verdicts, Verdict{
		What: what, Target: fmt.Sprintf("at most %.0f %s", target, unit),
		Measured: fmt.Sprintf("%.0f %s", measured, unit),
		Met:      measured <= target,
	})
}

// Result adds a result to the table with this title: one row per subject, with its time relative to
// the reference.
func (r *Report) Result(title string, result *Result, reference string) {
	table := r.Table(title, "read", "of", "p50 ms", "p10 to p90", "bytes", "times "+reference)
	for _, subject := range result.Case.Subjects {
		spread, ratio := result.Of(subject.Name), result.Ratio(subject.Name, reference)
		table.Row(result.Case.Name, subject.Name, millis(spread.Median),
			millis(spread.Low)+" to "+millis(spread.High), bytesText(result.Bytes[subject.Name]), fmt.Sprintf("%.2f", ratio.Median))
	}
}

// Missed returns the verdicts that are not met.
func (r *Report) Missed() []Verdict {
	return slices.DeleteFunc(slices.Clone(r.verdicts), func(v Verdict) bool { return v.Met })
}

// Print writes all tables, then the verdicts.
func (r *Report) Print(out io.Writer) error {
	var text strings.Builder
	for _, table := range r.tables {
		table.print(&text)
	}
	verdicts := &Table{title: "Targets", columns: []string{"what", "target", "measured", "verdict"}}
	for _, v := range r.verdicts {
		word := "met"
		if !v.Met {
			word = "MISSED"
		}
		verdicts.Row(v.What, v.Target, v.Measured, word)
	}
	if len(verdicts.rows) > 0 {
		verdicts.print(&text)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func (t *Table) print(out *strings.Builder) {
	widths := make([]int, len(t.columns))
	for _, row := range append([][]string{t.columns}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	line := func(cells []string) {
		for i, cell := range cells {
			fmt.Fprintf(out, "| %-*s ", widths[i], cell)
		}
		out.WriteString("|\n")
	}
	fmt.Fprintf(out, "\n%s\n\n", t.title)
	line(t.columns)
	for _, width := range widths {
		out.WriteString("|" + strings.Repeat("-", width+2))
	}
	out.WriteString("|\n")
	for _, row := range t.rows {
		line(row)
	}
}

// millis formats a number with three significant digits.
func millis(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}

func bytesText(n int64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%d B", n)
	}
}
