package manifest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	plainPrefix = "sha256:"
	keyedPrefix = "hmac-sha256:"
	hexLength   = 2 * sha256.Size
)

// ErrNoSecretKey reports that the digest of a Secret needs a key. There is no fallback: with a
// plain hash, users who can read digests could guess passwords.
var ErrNoSecretKey = errors.New("the digest of a Secret needs the store's key, and there is none")

// MismatchError reports that bytes do not match a digest. Stored bytes with this error are corrupt,
// and Penstock never serves or applies them.
type MismatchError struct {
	ID        ID
	Want, Got Digest
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: the manifest has digest %s, want %s", e.ID, e.Got, e.Want)
}

// Keyed reports whether the digest depends on a Digester's key.
func (d Digest) Keyed() bool {
	return strings.HasPrefix(string(d), keyedPrefix)
}

// Validate returns an error if the digest is malformed.
func (d Digest) Validate() error {
	digits, ok := strings.CutPrefix(string(d), plainPrefix)
	if !ok {
		if digits, ok = strings.CutPrefix(string(d), keyedPrefix); !ok {
			return fmt.Errorf("digest %q: want sha256:<hex>, or hmac-sha256:<hex> for a Secret", d)
		}
	}
	if len(digits) != hexLength || strings.Trim(digits, "0123456789abcdef") != "" {
		return fmt.Errorf("digest %q: want %d lower-case hexadecimal digits behind the colon", d, hexLength)
	}
	return nil
}

// Digester creates manifests with digests. The zero value supports all kinds except Secrets.
type Digester struct {
	// SecretKey is the key for digests of Secrets. Digests with different keys cannot be compared.
	SecretKey []byte
}

// New returns the manifest, with its digest, of an object decoded from JSON or YAML. It neither
// changes nor keeps the object. A fault in the object causes an *InvalidError.
func (d Digester) New(object map[string]any) (Object, error) {
	return d.seal(Canonical(object))
}

// FromJSON returns the manifest of a JSON object, with its digest. A fault in its content causes an
// *InvalidError. JSON that cannot be parsed, or has duplicate keys, causes another error.
func (d Digester) FromJSON(data []byte) (Object, error) {
	return d.seal(Parse(data))
}

// Ref returns the identity and digest of an object, for callers that do not need its bytes.
func (d Digester) Ref(object map[string]any) (Ref, error) {
	sealed, err := d.New(object)
	return sealed.Ref, err
}

// Check compares canonical JSON with the digest of a reference. It returns a *MismatchError if they
// differ, and another error if the digest cannot be computed. It does not compare identities; for
// that, parse the JSON.
func (d Digester) Check(ref Ref, canonical []byte) error {
	got, err := d.digest(ref.ID, canonical)
	if err != nil {
		return err
	}
	if !hmac.Equal([]byte(got), []byte(ref.Digest)) {
		return &MismatchError{ID: ref.ID, Want: ref.Digest, Got: got}
	}
	return nil
}

func (d Digester) seal(object Object, err error) (Object, error) {
	if err != nil {
		return Object{}, err
	}
	object.Digest, err = d.digest(object.ID, object.JSON)
	if err != nil {
		return Object{}, err
	}
	return object, nil
}

func (d Digester) digest(id ID, canonical []byte) (Digest, error) {
	if !id.IsSecret() {
		sum := sha256.Sum256(canonical)
		return Digest(plainPrefix + hex.EncodeToString(sum[:])), nil
	}
	if len(d.SecretKey) == 0 {
		return "", fmt.Errorf("%s: %w", id, ErrNoSecretKey)
	}
	mac := hmac.New(sha256.New, d.SecretKey)
	mac.Write(canonical)
	return Digest(keyedPrefix + hex.EncodeToString(mac.Sum(nil))), nil
}
