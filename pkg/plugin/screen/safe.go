package screen

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Safe returns untrusted text as one line that a terminal only prints. Line breaks and tabs become
// spaces. It removes control and format characters: they could move the cursor, change colours, or
// hide or reverse text.
func Safe(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case prints(r):
			return r
		default:
			return -1
		}
	}, text)
}

// SafeLines does the same for text of several lines: line breaks stay.
func SafeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Safe(lines[i])
	}
	return strings.Join(lines, "\n")
}

// prints reports whether a character is printable, and is not the replacement character.
func prints(r rune) bool {
	return unicode.IsPrint(r) && r != unicode.ReplacementChar
}

// Width returns the number of terminal columns of a safe text. East Asian wide characters take two
// columns, combining marks none.
func Width(text string) int {
	columns := 0
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// Crop cuts a safe text to a number of columns, and ends it with an ellipsis. With 0 it returns the
// whole text.
func Crop(text string, columns int) string {
	if columns <= 0 || Width(text) <= columns {
		return text
	}
	var kept strings.Builder
	used := 0
	for _, r := range text {
		if used+runeWidth(r) > columns-1 {
			break
		}
		kept.WriteRune(r)
		used += runeWidth(r)
	}
	return kept.String() + "…"
}

// Wrap breaks a safe text between words into lines of at most a number of columns. A longer word
// gets a separate line. With 0 it returns one line.
func Wrap(text string, columns int) []string {
	if columns <= 0 || Width(text) <= columns {
		return []string{text}
	}
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(text) {
		taken := Width(word)
		if used > 0 && used+1+taken > columns {
			lines = append(lines, line)
			line, used = "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+taken
	}
	return append(lines, line)
}
