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

// Table prints a table. Where the terminal is too narrow, the last column loses its end.
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
	used := 0
	columns := s.Size().Columns
	for i := 0; i <= last; i++ {
		text := row[i].Text
		if columns > 0 {
			text = Crop(text, max(1, columns-used))
		}
		line.WriteString(string(s.Paint(row[i].Style, text)))
		taken := Width(text)
		if i < last {
			line.WriteString(strings.Repeat(" ", widths[i]-min(widths[i], taken)+gap))
			taken = max(widths[i], taken) + gap
		}
		used += taken
		if columns > 0 && used >= columns {
			break
		}
	}
	s.Printf("%s\n", Styled(strings.TrimRight(line.String(), " ")))
}
