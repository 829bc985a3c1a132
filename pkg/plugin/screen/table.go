package screen

import "strings"

// Cell is one field of a table.
type Cell struct {
	Text  string
	Style Style
}

// Table has columns that are as wide as what is in them, computed without the colours.
type Table struct {
	Header []string
	Rows   [][]Cell
}

// Add adds a row of plain texts.
func (t *Table) Add(texts ...string) {
	row := make([]Cell, len(texts))
	for i, text := range texts {
		row[i].Text = text
	}
	t.Rows = append(t.Rows, row)
}

// gap is between two columns.
const gap = 3

// Table prints a table. Where the terminal is too narrow for the last column, that goes on
// below.
func (s *Screen) Table(t Table) {
	widths := make([]int, len(t.Header))
	for i, name := range t.Header {
		widths[i] = Width(name)
	}
	for _, row := range t.Rows {
		for i := range row {
			row[i].Text = Safe(row[i].Text)
			widths[i] = max(widths[i], Width(row[i].Text))
		}
	}
	header := make([]Cell, len(t.Header))
	for i, name := range t.Header {
		header[i] = Cell{Text: name, Style: Bold}
	}
	s.row(header, widths)
	for _, row := range t.Rows {
		s.row(row, widths)
	}
}

func (s *Screen) row(row []Cell, widths []int) {
	last := len(row) - 1
	for last > 0 && row[last].Text == "" {
		last--
	}
	var line strings.Builder
	used, columns := 0, s.Size().Columns
	for i := 0; i < last; i++ {
		text := row[i].Text
		if columns > 0 {
			text = Crop(text, max(1, columns-used))
		}
		line.WriteString(string(s.Paint(row[i].Style, text)))
		line.WriteString(strings.Repeat(" ", widths[i]-Width(text)+gap))
		if used += widths[i] + gap; columns > 0 && used >= columns {
			break
		}
	}
	switch {
	case columns == 0 || used+Width(row[last].Text) <= columns:
		s.Printf("%s%s\n", Styled(line.String()), s.Paint(row[last].Style, row[last].Text))
	case last == len(widths)-1 && columns-used >= leastRoom:
		for i, part := range Wrap(row[last].Text, columns-used) {
			before := strings.Repeat(" ", used)
			if i == 0 {
				before = line.String()
			}
			s.Printf("%s%s\n", Styled(before), s.Paint(row[last].Style, part))
		}
	default:
		s.Printf("%s\n", Styled(strings.TrimRight(line.String(), " ")))
		s.Indented(belowIndent, row[last].Style, row[last].Text)
	}
}

const (
	// leastRoom is how many columns the last column needs to be broken in its place.
	leastRoom = 24
	// belowIndent is where it stands in a line of its own otherwise.
	belowIndent = 4
)
