package manifest

import (
	"fmt"
	"unicode/utf8"
)

// ForApply returns equivalent JSON for the body of a server-side apply, which API servers parse as
// YAML. It escapes characters that YAML strings do not allow or change: control characters,
// noncharacters, and U+0085, which YAML turns into a space. JSON without such characters is
// returned unchanged.
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
