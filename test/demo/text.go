package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// wrap breaks a line at spaces so that no part is wider than width. The parts after the first are
// indented. A word that is too long for one line is cut.
func wrap(text string, width int, indent string) []string {
	var lines []string
	for utf8.RuneCountInString(text) > width {
		cut := breakAt(text, width)
		lines = append(lines, strings.TrimRight(text[:cut], " "))
		text = indent + strings.TrimLeft(text[cut:], " ")
	}
	return append(lines, text)
}

// breakAt returns the byte offset at which to break a text wider than width: after the last space
// that is not indentation, or at width.
func breakAt(text string, width int) int {
	runes, space, end := 0, -1, len(text)
	for i, r := range text {
		if runes == width {
			end = i
		}
		if runes > width {
			break
		}
		if r == ' ' && strings.TrimSpace(text[:i]) != "" {
			space = i
		}
		runes++
	}
	if space > 0 {
		return space + 1
	}
	return end
}

// clip truncates a text to a width.
func clip(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// seconds formats a duration for the transcript: "0.42 s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// some lists items up to limit, and counts the others.
func some(items []string, limit int) string {
	if len(items) > limit+1 {
		items = append(items[:limit:limit], fmt.Sprintf("and %d more", len(items)-limit))
	}
	return strings.Join(items, ", ")
}

func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'$`\\*?[]{}!#~&|;<>()") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// lastLines returns the end of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// broken is a command that goes on in the next line where it is wider than width:
// with a backslash, before an option if that is possible, and never in quotes.
func broken(command string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(command, "\n") {
		for utf8.RuneCountInString(line) > width {
			at := commandBreak(line, width-len(" \\"))
			if at < 0 {
				break
			}
			lines = append(lines, line[:at]+" \\")
			line = line[at+1:]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// commandBreak returns the index of the space at which to break a command so that
// what is before it is not wider than width, or -1.
func commandBreak(line string, width int) int {
	option, any := -1, -1
	inQuotes := false
	for i, r := range line {
		if utf8.RuneCountInString(line[:i]) > width {
			break
		}
		switch {
		case r == '\'':
			inQuotes = !inQuotes
		case r == ' ' && !inQuotes:
			any = i
			if strings.HasPrefix(line[i+1:], "-") {
				option = i
			}
		}
	}
	// A break near the beginning would only make one more line.
	if option > width/2 {
		return option
	}
	return any
}
