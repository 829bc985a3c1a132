package sigstore

import (
	"strings"
	"testing"
)

// TestUnreadable: an invalid key is an error. hack/release/sign tests signatures with this package.
func TestUnreadable(t *testing.T) {
	for _, key := range []string{"", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"} {
		if _, err := ByKey([]byte(key)); err == nil {
			t.Errorf("the key %q is taken", key)
		}
	}
	const begin = `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"`
	for signed, want := range map[string]string{
		"":   "reading the bundle",
		"{}": "media type",
		`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.9+json"}`: "media type",
		begin + `}`: "by an identity",
		begin + `,"verificationMaterial":{"certificate":{"rawBytes":"AA=="}}}`: "by an identity",
		strings.Repeat("a", LargestBundle+1):                                   "allowed are",
	} {
		if _, err := parse([]byte(signed)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the bundle %.40q: %v, want an error with %q", signed, err, want)
		}
	}
}
