package manifest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDigests: the expected digests were computed with sha256sum and openssl dgst -hmac.
func TestDigests(t *testing.T) {
	key := []byte("0123456789abcdef")
	cases := map[string]struct {
		reason string
		key    []byte
		in     string
		want   Digest
		err    error
	}{
		"Plain": {
			reason: "the digest is a plain SHA-256 of the canonical JSON: anybody can compute it",
			in:     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
			want:   "sha256:bee2360fe9a24e63651736acbf8fc1ac4f6085afb8cc9e79cd3b1315b0294dc6",
		},
		"PlainWithKey": {
			reason: "the key is for Secrets only",
			key:    key,
			in:     `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null},"status":{}}`,
			want:   "sha256:bee2360fe9a24e63651736acbf8fc1ac4f6085afb8cc9e79cd3b1315b0294dc6",
		},
		"Secret": {
			reason: "a Secret's digest is keyed",
			key:    key,
			in:     `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"p":"x"}}`,
			want:   "hmac-sha256:8a5e5f140ae416fa8d81f371c9d89523e52e7ca43ebf138dea6878bcacef12db",
		},
		"SecretWithoutKey": {
			reason: "there is no fallback to a digest that can be guessed",
			in:     `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`,
			err:    ErrNoSecretKey,
		},
		"SecretOfAnotherGroup": {
			reason: "only the core group has Secrets",
			in:     `{"apiVersion":"example.com/v1","kind":"Secret","metadata":{"name":"a"}}`,
			want:   "sha256:0e00025253e600abfc5920c06fafbe9b8bd2556924cd0d327d2d38a1603bf16c",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			digester := Digester{SecretKey: tc.key}
			got, err := digester.FromJSON([]byte(tc.in))
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s: got error %v, want %v", tc.reason, err, tc.err)
			}
			if tc.err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got.Digest); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if err := got.Digest.Validate(); err != nil {
				t.Error(err)
			}
			if err := digester.Check(got.Ref, got.JSON); err != nil {
				t.Errorf("Check of its own bytes: %v", err)
			}
			broken := append([]byte(nil), got.JSON...)
			broken[len(broken)-3] ^= 1
			var mismatch *MismatchError
			if err := digester.Check(got.Ref, broken); !errors.As(err, &mismatch) {
				t.Errorf("Check of other bytes: got %v, want a *MismatchError", err)
			}
		})
	}
}

func TestSecretDigestDependsOnKey(t *testing.T) {
	secret := []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"p":"eA=="}}`)
	one, err := Digester{SecretKey: []byte("one")}.FromJSON(secret)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Digester{SecretKey: []byte("two")}.FromJSON(secret)
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest == two.Digest {
		t.Errorf("two keys give one digest %s", one.Digest)
	}
	if !one.Digest.Keyed() {
		t.Errorf("%s is not told to be keyed", one.Digest)
	}
}

func TestDigestValidate(t *testing.T) {
	digits := strings.Repeat("0a", 32)
	cases := map[string]struct {
		reason string
		in     Digest
		valid  bool
	}{
		"Plain":     {"as Digester makes them", Digest("sha256:" + digits), true},
		"Keyed":     {"as Digester makes them", Digest("hmac-sha256:" + digits), true},
		"Empty":     {"it names nothing", "", false},
		"NoPrefix":  {"the algorithm is missing", Digest(digits), false},
		"Algorithm": {"there is no such digest", Digest("sha512:" + digits), false},
		"Short":     {"digits are missing", "sha256:0a", false},
		"UpperCase": {"digests are compared as text", Digest("sha256:" + strings.ToUpper(digits)), false},
		"NotHex":    {"g is no digit", Digest("sha256:" + strings.Repeat("0g", 32)), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.in.Validate(); (err == nil) != tc.valid {
				t.Errorf("%s: got %v, want valid %t", tc.reason, err, tc.valid)
			}
		})
	}
}

// TestSecretDigestIsOfItsName: digests only reveal whether two Secrets of the same namespace and
// name are equal.
func TestSecretDigestIsOfItsName(t *testing.T) {
	digester := Digester{SecretKey: []byte("one")}
	seen := map[Digest]string{}
	for _, at := range []string{`"namespace":"a","name":"b"`, `"namespace":"b","name":"b"`, `"namespace":"a","name":"c"`} {
		object, err := digester.FromJSON([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{` + at + `},"data":{"pin":"MTIzNA=="}}`))
		if err != nil {
			t.Fatal(err)
		}
		if other, same := seen[object.Digest]; same {
			t.Errorf("the Secrets with %s and %s have the same digest", other, at)
		}
		seen[object.Digest] = at
	}
}
