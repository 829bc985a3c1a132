package manifest

import (
	"fmt"
	"unicode/utf8"
)

// ForApply is the same JSON as the body of a server-side apply, without what may be as it is in
// the strings of JSON and not in those of YAML, as which API servers read such a body: they
// refuse control characters and what is no character, and U+0085 is a line break, of which they
// make a space. JSON that has nothing of it is returned itself.
func ForApply(body []byte) []byte {
	var out []byte
	from := 0
	for i := 0; i < len(body); i++ {
		if body[i] < 0x7f {
			continue
		}
		r, size := utf8.DecodeRune(body[i:])
		if r <= 0x9f || r == 0xfffe || r == 0xffff {
			out = fmt.Appendf(append(out, body[from:i]...), `\u%04x`, r)
			from = i + size
		}
		i += size - 1
	}
	if out == nil {
		return body
	}
	return append(out, body[from:]...)
}
