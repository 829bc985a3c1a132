package text

import (
	"bytes"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// ByteOrderMark may precede UTF-8 text, also in the middle of a file that was joined from several
// files.
const ByteOrderMark = "\ufeff"

// UTF8 returns text without its byte order mark. It converts UTF-16, which PowerShell writes, to
// UTF-8. Text without a mark is returned unchanged.
func UTF8(content []byte) []byte {
	if !HasMark(content) {
		return content
	}
	converted, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), content)
	if err != nil {
		return content // the text is invalid, and its reader reports that
	}
	return converted
}

// HasMark reports whether text begins with a byte order mark, of UTF-8 or UTF-16.
func HasMark(content []byte) bool {
	return bytes.HasPrefix(content, []byte(ByteOrderMark)) || bytes.HasPrefix(content, []byte{0xff, 0xfe}) || bytes.HasPrefix(content, []byte{0xfe, 0xff})
}
