package text

import (
	"testing"

	"golang.org/x/text/encoding/unicode"
)

// TestUTF8: the text is the same in every encoding that a mark declares.
func TestUTF8(t *testing.T) {
	const want = "name: é\n"
	for name, encoded := range map[string][]byte{
		"UTF-8":             []byte(want),
		"UTF-8 with a mark": []byte(ByteOrderMark + want),
		"little endian":     encode(t, unicode.LittleEndian, want),
		"big endian":        encode(t, unicode.BigEndian, want),
	} {
		if got := string(UTF8(encoded)); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func encode(t *testing.T, endianness unicode.Endianness, content string) []byte {
	t.Helper()
	encoded, err := unicode.UTF16(endianness, unicode.UseBOM).NewEncoder().Bytes([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
