// Package text formats messages for people: their length, and counts.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// Cut returns the first bytes of a text, at most so many, without a sign that there were
// more. The character that does not fit is left out.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Clip returns a text of at most so many bytes. It cuts a longer text at
// its end, where an ellipsis stands, and no character is left half: conditions and
// errors are UTF-8.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, limit-len(ellipsis))], "") + ellipsis
}

// Middle returns a text of at most so many bytes, of which the middle is left out: an
// ellipsis stands there. Refusals of servers begin with the field, go on with the
// value, however long that is, and end with the reason.
func Middle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	room := max(0, limit-len(ellipsis))
	head := room / 3
	return strings.ToValidUTF8(text[:head], "") + ellipsis + strings.ToValidUTF8(text[len(text)-(room-head):], "")
}

// Punctuated is a message that was joined of sentences of others, without the full stops that end
// these before a semicolon or a colon.
func Punctuated(message string) string {
	return strings.NewReplacer(".; ", "; ", ".: ", ": ").Replace(message)
}

// Count is "1 object" or "8 objects".
func Count[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Line makes one printable line of what others wrote, of at most so many bytes: each gap
// is one space, and characters that do not print are left out. Those move the cursor, or
// turn or hide text.
func Line(text string, limit int) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		if b.Len() > limit {
			break // Clip cuts it
		}
		switch {
		case unicode.IsSpace(r):
			gap = b.Len() > 0
		case unicode.IsPrint(r) && r != utf8.RuneError:
			if gap {
				b.WriteByte(' ')
				gap = false
			}
			b.WriteRune(r)
		}
	}
	return Clip(b.String(), limit)
}
