package text

import (
	"bytes"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// ByteOrderMark may stand before UTF-8 text, also within a file that was joined from several.
const ByteOrderMark = "\ufeff"

// UTF8 returns text without its byte order mark, and converts UTF-16, which PowerShell writes, to
// UTF-8. It returns text without a mark unchanged.
func UTF8(content []byte) []byte {
	if !HasMark(content) {
		return content
	}
	converted, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), content)
	if err != nil {
		return content // it is not valid, and the reader of the text says so
	}
	return converted
}

// HasMark reports whether text begins with a byte order mark, of UTF-8 or UTF-16.
func HasMark(content []byte) bool {
	return bytes.HasPrefix(content, []byte(ByteOrderMark)) || bytes.HasPrefix(content, []byte{0xff, 0xfe}) || bytes.HasPrefix(content, []byte{0xfe, 0xff})
}
