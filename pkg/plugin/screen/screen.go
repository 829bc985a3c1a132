// Package screen prints for people: in colour on request, as wide as the terminal, and without
// control characters from untrusted text. Colours add no information: glyphs and words show the
// same.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Style is the colour of a text.
type Style string

// The styles, as terminal escape codes.
const (
	Plain  Style = ""
	Bold   Style = "\x1b[1m"
	Dim    Style = "\x1b[2m"
	Red    Style = "\x1b[31m"
	Green  Style = "\x1b[32m"
	Yellow Style = "\x1b[33m"
	Cyan   Style = "\x1b[36m"
	reset        = "\x1b[0m"
)

// The glyphs stand before a line and show its state.
const (
	Good    = "✓"
	Bad     = "✗"
	Working = "◎"
	Waiting = "·"
	Notice  = "!"
)

// Styled is a text with colours from Paint. Its untrusted parts are safe.
type Styled string

// Size is the size of a terminal, in columns and lines.
type Size struct{ Columns, Lines int }

// Terminal reports whether a stream is a terminal, and its size.
type Terminal func(stream any) (Size, bool)

// RealTerminal asks the operating system.
func RealTerminal(stream any) (Size, bool) {
	file, is := stream.(*os.File)
	if !is || !term.IsTerminal(int(file.Fd())) {
		return Size{}, false
	}
	columns, lines, err := term.GetSize(int(file.Fd()))
	if err != nil || columns <= 0 || lines <= 0 {
		return Size{Columns: 80, Lines: 24}, true
	}
	return Size{Columns: columns, Lines: lines}, true
}

// Colour is a value of --color.
type Colour string

// The values of --color.
const (
	ColourAuto   Colour = "auto"
	ColourAlways Colour = "always"
	ColourNever  Colour = "never"
)

// Screen prints to one stream. It wraps lines at the width of the terminal. Without a terminal, it
// does not wrap.
type Screen struct {
	out    io.Writer
	colour bool
	tty    bool
	// size reads the size each time, because windows change.
	size func() Size
}

// New returns a screen that prints to a stream. With Auto, it prints colours on a terminal that has
// them, unless NO_COLOR (https://no-color.org) is set.
func New(out io.Writer, terminal Terminal, colour Colour, getenv func(string) string) *Screen {
	_, tty := terminal(out)
	capable := tty && getenv("TERM") != "dumb"
	return &Screen{
		out: out, tty: capable,
		colour: colour == ColourAlways || colour != ColourNever && capable && getenv("NO_COLOR") == "",
		size: func() Size {
			size, _ := terminal(out)
			return size
		},
	}
}

// Redraws reports whether printed lines can be replaced.
func (s *Screen) Redraws() bool { return s.tty }

// Size returns the size of the terminal; 0 without a terminal.
func (s *Screen) Size() Size { return s.size() }

// Paint returns a text in a style.
func (s *Screen) Paint(style Style, text string) Styled {
	text = Safe(text)
	if !s.colour || style == Plain || text == "" {
		return Styled(text)
	}
	return Styled(string(style) + text + reset)
}

// Printf prints. It makes text arguments safe, except painted ones. It ignores write errors.
func (s *Screen) Printf(format string, args ...any) {
	for i, arg := range args {
		switch value := arg.(type) {
		case Styled:
		case string:
			args[i] = Safe(value)
		case error:
			args[i] = Safe(value.Error())
		case fmt.Stringer:
			args[i] = Safe(value.String())
		}
	}
	fmt.Fprintf(s.out, format, args...)
}

// Para prints a text after a glyph, wrapped between words. Later lines are indented like the text
// of the first line.
func (s *Screen) Para(style Style, glyph, text string) {
	indent := Width(glyph) + 1
	if glyph == "" {
		indent = 0
	}
	for i, line := range Wrap(Safe(text), s.room(indent)) {
		switch {
		case glyph == "":
			s.Printf("%s\n", line)
		case i == 0:
			s.Printf("%s %s\n", s.Paint(style, glyph), line)
		default:
			s.Printf("%s%s\n", strings.Repeat(" ", indent), line)
		}
	}
}

// Indented prints an indented text, wrapped between words.
func (s *Screen) Indented(columns int, style Style, text string) {
	for _, line := range Wrap(Safe(text), s.room(columns)) {
		s.Printf("%s%s\n", strings.Repeat(" ", columns), s.Paint(style, line))
	}
}

// room returns the number of columns to the right of an indentation, at least 20; 0 means no limit.
func (s *Screen) room(indent int) int {
	columns := s.Size().Columns
	if columns == 0 {
		return 0
	}
	return max(20, columns-indent)
}
