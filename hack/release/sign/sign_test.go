package sign

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// TestSimple: signatures have cosign's format, which containers/image reads, too.
func TestSimple(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := newKey(private)
	if err != nil {
		t.Fatal(err)
	}
	payload, encoded, err := key.Simple("registry.example.com/penstock", "sha256:1f2e")
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(payload); !ecdsa.VerifyASN1(&private.PublicKey, sum[:], signature) {
		t.Error("the signature is not of the payload")
	}
	var content struct {
		Critical struct {
			Identity map[string]string `json:"identity"`
			Image    map[string]string `json:"image"`
			Type     string            `json:"type"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(payload, &content); err != nil {
		t.Fatal(err)
	}
	if c := content.Critical; c.Type != "cosign container image signature" || c.Image["docker-manifest-digest"] != "sha256:1f2e" || c.Identity["docker-reference"] != "registry.example.com/penstock" {
		t.Errorf("the payload is %s", payload)
	}
}

// TestReadKey: keys of cosign generate-key-pair are accepted. Keys that a verifier does not support
// are refused.
func TestReadKey(t *testing.T) {
	encrypted, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte("secret")))
	if err != nil {
		t.Fatal(err)
	}
	if key, err := ReadKey(encrypted, "secret"); err != nil || string(key.Public) != string(public) {
		t.Errorf("a key with a password: %v", err)
	}
	if _, err := ReadKey(encrypted, "other"); err == nil {
		t.Error("a wrong password is taken")
	}
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.MarshalPKCS8PrivateKey(large)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: content}), ""); err == nil || !strings.Contains(err.Error(), "want P-256") {
		t.Errorf("a key of P-384: %v", err)
	}
}
