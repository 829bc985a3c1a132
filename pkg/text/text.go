// Package text formats messages for people: it bounds their length, and formats counts.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// Cut returns the first bytes of a text, at most limit, without an ellipsis. It omits a character
// that does not fit.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Clip returns a text of at most limit bytes. A longer text is cut and ends with an ellipsis. It
// never cuts within a character, because conditions and errors are UTF-8.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, limit-len(ellipsis))], "") + ellipsis
}

// Middle returns a text of at most the given number of bytes, with an ellipsis in place of the
// middle. A server's refusal begins with the field and ends with the reason. The value between them
// may be long.
func Middle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	room := max(0, limit-len(ellipsis))
	head := room / 3
	return strings.ToValidUTF8(text[:head], "") + ellipsis + strings.ToValidUTF8(text[len(text)-(room-head):], "")
}

// Punctuated removes full stops before semicolons and colons from a message that was joined from
// sentences.
func Punctuated(message string) string {
	return strings.NewReplacer(".; ", "; ", ".: ", ": ").Replace(message)
}

// Count returns a text such as "1 object" or "8 objects".
func Count[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Line returns untrusted text as one printable line of at most the given number of bytes. Each gap
// becomes one space. It removes unprintable characters: they could move the cursor, or reverse or
// hide text.
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
