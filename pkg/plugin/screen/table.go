package screen

import "strings"

// Cell is one field of a table.
type Cell struct {
	Text  string
	Style Style
}

// Table has columns as wide as their content, without colours.
type Table struct {
	Header []string
	Rows   [][]Cell
	// Clip cuts the last column on a narrow terminal, so that each row is one line.
	Clip bool
}

// Add adds a row of plain texts.
func (t *Table) Add(texts ...string) {
	row := make([]Cell, len(texts))
	for i, text := range texts {
		row[i].Text = text
	}
	t.Rows = append(t.Rows, row)
}

// gap is the space between two columns, if there is room for it.
const gap = 3

// gapFor returns the gap of a table. It is smaller if a clipped last column needs the room.
func (s *Screen) gapFor(t *Table, widths []int) int {
	columns, between := s.Size().Columns, gap
	if !t.Clip || columns == 0 {
		return between
	}
	last := len(widths) - 1
	before := 0
	for _, width := range widths[:last] {
		before += width
	}
	for between > 1 && columns-before-between*last < min(widths[last], leastRoom) {
		between--
	}
	return between
}

// Table prints a table. On a narrow terminal the last column is wrapped below or cut.
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
	between := s.gapFor(&t, widths)
	s.row(header, widths, between, t.Clip)
	for _, row := range t.Rows {
		s.row(row, widths, between, t.Clip)
	}
}

func (s *Screen) row(row []Cell, widths []int, between int, clip bool) {
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
		line.WriteString(strings.Repeat(" ", widths[i]-Width(text)+between))
		if used += widths[i] + between; columns > 0 && used >= columns {
			break
		}
	}
	switch {
	case columns == 0 || used+Width(row[last].Text) <= columns:
		s.Printf("%s%s\n", Styled(line.String()), s.Paint(row[last].Style, row[last].Text))
	case clip && used < columns:
		s.Printf("%s%s\n", Styled(line.String()), s.Paint(row[last].Style, Crop(row[last].Text, columns-used)))
	case clip:
		s.Printf("%s\n", Styled(strings.TrimRight(line.String(), " ")))
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
	// leastRoom is the minimum number of columns for breaking the last column in its place.
	leastRoom = 24
	// belowIndent is the indentation of the last column when it is on a separate line.
	belowIndent = 4
)
