package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// columns is the width of the transcript. outputColumns is the width of the commands' output,
// because kubectl's wide tables are hard to read when wrapped.
const (
	columns       = 100
	outputColumns = 140
)

// Colours as terminal escape sequences.
const (
	plain  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// screen prints the transcript. Colours and replaced lines are only for terminals, so it also reads
// well in a file.
type screen struct {
	out    io.Writer
	tty    bool
	colour bool
	// passing is true if the next line replaces the last printed line.
	passing bool
}

// newScreen prints to a file. It honours NO_COLOR (https://no-color.org).
func newScreen(out *os.File, getenv func(string) string) *screen {
	info, err := out.Stat()
	tty := err == nil && info.Mode()&os.ModeCharDevice != 0 && getenv("TERM") != "dumb"
	return &screen{out: out, tty: tty, colour: tty && getenv("NO_COLOR") == ""}
}

func (s *screen) title(text string) {
	rule := strings.Repeat("─", max(3, columns-utf8.RuneCountInString(text)-4))
	s.line("")
	s.line(s.paint(bold, "── "+text+" "+rule))
}

func (s *screen) why(text string) {
	for _, line := range wrap(text, columns, "") {
		s.line(s.paint(dim, line))
	}
	s.line("")
}

// command prints a command as a user would type it.
func (s *screen) command(text string) {
	for i, line := range strings.Split(broken(text, columns-len("    ")), "\n") {
		prompt := "$ "
		if i > 0 {
			prompt = "    "
		}
		s.line(s.paint(bold, prompt+line))
	}
}

// output prints the output of a command. It wraps long lines with an indentation.
func (s *screen) output(text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(strings.ReplaceAll(line, "\t", "  "), " ")
		s.broken(line, outputColumns, "      ")
	}
}

// item prints a line of a list; continuation lines are indented.
func (s *screen) item(text, indent string) { s.broken(text, columns, indent) }

func (s *screen) broken(text string, width int, indent string) {
	for _, part := range wrap(text, width-2, indent) {
		s.line("  " + part)
	}
}

// ok prints a checked claim.
func (s *screen) ok(format string, args ...any) {
	s.marked(green, "✓", fmt.Sprintf(format, args...))
}

// note prints unchecked information.
func (s *screen) note(format string, args ...any) {
	s.marked(yellow, "·", fmt.Sprintf(format, args...))
}

// wrong prints a claim that does not hold.
func (s *screen) wrong(text string) { s.marked(red, "✗", text) }

// detail prints details of the previous line.
func (s *screen) detail(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, part := range wrap(line, columns-4, "  ") {
			s.line("    " + part)
		}
	}
}

func (s *screen) marked(colour, mark, text string) {
	for i, line := range wrap(text, columns-2, "") {
		if i == 0 {
			s.line(s.paint(colour, mark) + " " + line)
		} else {
			s.line("  " + line)
		}
	}
}

// pass shows a line that the next line replaces, only on a terminal.
func (s *screen) pass(format string, args ...any) {
	if !s.tty {
		return
	}
	text := clip("  "+fmt.Sprintf(format, args...), columns-1)
	fmt.Fprintf(s.out, "\r\x1b[K%s", s.paint(dim, text))
	s.passing = true
}

// line prints a line. SIGPIPE ends the demo when its output is closed.
func (s *screen) line(text string) {
	s.clear()
	fmt.Fprintln(s.out, text)
}

func (s *screen) clear() {
	if s.passing {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.passing = false
	}
}

func (s *screen) paint(colour, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return colour + text + plain
}
