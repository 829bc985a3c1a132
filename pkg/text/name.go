package text

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"
)

// digestLength is the length of the digest in a name. With 80 bits, no user can find a second
// identity that has the name of another user's future object.
const digestLength = 16

// Name returns a DNS label of at most the given number of bytes, at least 18, for an object whose
// name Penstock chooses. It begins with the readable text and ends with a digest of the identity. A
// hyphen between the parts would be ambiguous: "a-b" with "c", and "a" with "b-c".
func Name(most int, readable string, identity ...string) string {
	// Encoding a list of strings never fails, and different lists have different encodings.
	encoded, _ := json.Marshal(identity)
	sum := sha256.Sum256(encoded)
	digest := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:digestLength]
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(readable))
	label = strings.Trim(Cut(label, most-digestLength-1), "-")
	if label == "" {
		return digest
	}
	return label + "-" + digest
}
