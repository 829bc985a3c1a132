package diff

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Manifests are written by others and end up in terminals. Whatever does not
// print is escaped: control characters, which move the cursor or change the
// title of the window, and format characters, which turn the direction of text
// round or hide it.

const textBytes = 256

// text makes one short printable line of anything.
func text(s string) string {
	if len(s) > textBytes {
		s = cut(s, textBytes) + "..."
	}
	if printable(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			writeEscape(&b, r)
		}
	}
	return b.String()
}

// cut returns at most n bytes of s, without a broken character at the end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

func writeEscape(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r <= 0xffff:
		writeHex(b, r)
	default:
		high, low := utf16.EncodeRune(r)
		writeHex(b, high)
		writeHex(b, low)
	}
}

func writeHex(b *strings.Builder, r rune) {
	hex := strconv.FormatUint(uint64(r), 16)
	b.WriteString(`\u`)
	b.WriteString("0000"[len(hex):])
	b.WriteString(hex)
}

// quote writes a JSON string in which only characters that print are left as
// they are.
func quote(s string) string { return quoted(s, writeEscape) }

// quoteYAML is quote with the escapes that YAML has: it knows no surrogates.
func quoteYAML(s string) string {
	return quoted(s, func(b *strings.Builder, r rune) {
		if r <= 0xffff {
			writeEscape(b, r)
			return
		}
		hex := strconv.FormatUint(uint64(r), 16)
		b.WriteString(`\U` + "00000000"[len(hex):] + hex)
	})
}

func quoted(s string, escape func(*strings.Builder, rune)) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r) && r != utf8.RuneError:
			b.WriteRune(r)
		default:
			escape(&b, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// scalarJSON writes null, a boolean, a number or a string.
func scalarJSON(value any) string {
	if s, ok := value.(string); ok {
		return quote(s)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	return string(encoded)
}
