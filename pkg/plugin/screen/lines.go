package screen

import (
	"fmt"
	"strings"
)

// Line is one line of a picture.
type Line struct {
	// Indent is the indentation of the line, in columns.
	Indent int
	Glyph  string
	Style  Style
	Text   string
	// Keep is true for a line that is shown even when the space is short.
	Keep bool
	// Whole is true if a replaced picture wraps the line between words instead of cropping it.
	Whole bool
}

// broken wraps the lines that must be shown whole, so that they fit. Such lines have no glyph.
func broken(lines []Line, columns int) []Line {
	var out []Line
	for _, line := range lines {
		if !line.Whole || line.Glyph != "" {
			out = append(out, line)
			continue
		}
		for _, part := range Wrap(Safe(line.Text), max(20, columns-1-line.Indent)) {
			next := line
			next.Text = part
			out = append(out, next)
		}
	}
	return out
}

// Lines prints a picture, and wraps lines that are longer than the terminal is wide.
func (s *Screen) Lines(lines []Line) {
	for _, line := range lines {
		indent := line.Indent
		if line.Glyph != "" {
			indent += Width(line.Glyph) + 1
		}
		for i, part := range Wrap(Safe(line.Text), s.room(indent)) {
			switch {
			case i == 0 && line.Glyph != "":
				s.Printf("%s%s %s\n", strings.Repeat(" ", line.Indent), s.Paint(line.Style, line.Glyph), part)
			case line.Glyph != "":
				s.Printf("%s%s\n", strings.Repeat(" ", indent), part)
			default:
				s.Printf("%s%s\n", strings.Repeat(" ", indent), s.Paint(line.Style, part))
			}
		}
	}
}

// Live shows a picture that replaces the previous one on a terminal. The last picture stays.
type Live struct {
	Screen *Screen
	drawn  int
	last   string
}

// Draw replaces the picture. If the picture is higher than the terminal, it omits unimportant lines
// and states their number.
func (l *Live) Draw(lines []Line) {
	size := l.Screen.Size()
	var picture strings.Builder
	lines = fitting(broken(lines, size.Columns), size.Lines-1)
	for _, line := range lines {
		room := max(1, size.Columns-1-line.Indent)
		text := Safe(line.Text)
		fmt.Fprint(&picture, strings.Repeat(" ", line.Indent))
		if line.Glyph != "" {
			text = Crop(text, max(1, room-Width(line.Glyph)-1))
			fmt.Fprintf(&picture, "%s %s\n", l.Screen.Paint(line.Style, line.Glyph), text)
			continue
		}
		fmt.Fprintf(&picture, "%s\n", l.Screen.Paint(line.Style, Crop(text, room)))
	}
	if picture.String() == l.last {
		return
	}
	up := ""
	if l.drawn > 0 {
		up = fmt.Sprintf("\x1b[%dA\x1b[J", l.drawn)
	}
	// The picture is written at once: otherwise it would flicker.
	l.Screen.Printf("%s", Styled(up+picture.String()))
	l.drawn, l.last = len(lines), picture.String()
}

// fitting returns at most room lines in their order. The first line and lines to keep have
// priority.
func fitting(lines []Line, room int) []Line {
	if room <= 1 || len(lines) <= room {
		return lines
	}
	keep := make([]bool, len(lines))
	left := room - 1 // one line states the number of omitted lines
	for _, must := range []bool{true, false} {
		for i, line := range lines {
			if left > 0 && !keep[i] && (line.Keep || i == 0) == must {
				keep[i] = true
				left--
			}
		}
	}
	var out []Line
	for i, line := range lines {
		if keep[i] {
			out = append(out, line)
		}
	}
	return append(out, Line{Style: Dim, Text: fmt.Sprintf("… and %d more lines", len(lines)-len(out))})
}
