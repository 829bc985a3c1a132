// Package printable makes text of manifests safe for terminals. It escapes control characters,
// which can move the cursor, and format characters, which can hide text or reverse its direction.
// It also escapes lookalike letters, such as a Cyrillic letter in a Latin word.
package printable

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/penstock-project/penstock/pkg/text"
)

const lineBytes = 256

// Line converts any text to one printable line. It cuts text after 256 bytes.
func Line(s string) string {
	if len(s) > lineBytes {
		s = text.Cut(s, lineBytes) + "..."
	}
	if Is(s) {
		return s
	}
	var b strings.Builder
	escaped := misleading(s)
	for _, r := range s {
		if unicode.IsPrint(r) && !escaped[r] {
			b.WriteRune(r)
		} else {
			writeEscape(&b, r)
		}
	}
	return b.String()
}

// Is reports whether every character of a text is printable.
func Is(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return misleading(s) == nil
}

// Literal returns the form of a text in JSON for clients. If the text has characters that YAML does
// not allow, it becomes a JSON string with quotes and escapes, because clients could not print it
// as YAML. Different texts have different forms.
func Literal(s string) string {
	for _, r := range s {
		if r >= 0x7f && r <= 0x9f && r != 0x85 || r == 0xfffe || r == 0xffff {
			return Quote(s)
		}
	}
	if strings.HasPrefix(s, `"`) && strings.Contains(s, `\`) {
		return Quote(s)
	}
	return s
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

// Quote returns a JSON string in which unprintable characters are escaped.
func Quote(s string) string { return quoted(s, writeEscape) }

// QuoteYAML works like Quote, with the escapes of YAML, which has no surrogates.
func QuoteYAML(s string) string {
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
	escaped := misleading(s)
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r) && r != utf8.RuneError && !escaped[r]:
			b.WriteRune(r)
		default:
			escape(&b, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Scalar returns null, a boolean, a number or a string as JSON.
func Scalar(value any) string {
	if s, ok := value.(string); ok {
		return Quote(s)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	return string(encoded)
}
