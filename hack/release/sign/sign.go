// Package sign signs a release with a key. It creates Sigstore bundles for the checksums, the
// provenance and the image, the image's signature in the form of cosign 2, and Helm's signature of
// the chart. The same key creates the same signatures.
package sign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/penstock-project/penstock/pkg/sigstore"
)

// Key is a private key that signs.
type Key struct {
	signer crypto.Signer
	hint   string
	// Public is the public key in PEM.
	Public []byte
}

// ReadKey reads a private key in PEM: ECDSA P-256 or Ed25519. The form is PKCS 8, or that of cosign
// generate-key-pair, which needs the password.
func ReadKey(content []byte, password string) (*Key, error) {
	read, err := cryptoutils.UnmarshalPEMToPrivateKey(content, cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	switch key := read.(type) {
	case *ecdsa.PrivateKey:
		if bits := key.Params().BitSize; bits != 256 {
			return nil, fmt.Errorf("the private key is of ECDSA with %d bits, want P-256", bits)
		}
		return newKey(key)
	case ed25519.PrivateKey:
		return newKey(key)
	default:
		return nil, fmt.Errorf("the private key is a %T, want one of ECDSA P-256 or Ed25519", read)
	}
}

func newKey(signer crypto.Signer) (*Key, error) {
	public, err := cryptoutils.MarshalPublicKeyToPEM(signer.Public())
	if err != nil {
		return nil, fmt.Errorf("writing the public key: %w", err)
	}
	name, err := sigstore.KeyName(signer.Public())
	if err != nil {
		return nil, err
	}
	return &Key{signer: signer, hint: name, Public: public}, nil
}

// sign returns the signature of content, the same each time: without a source of random numbers,
// crypto/ecdsa follows RFC 6979.
func (k *Key) sign(content []byte) ([]byte, error) {
	if _, is := k.signer.(ed25519.PrivateKey); is {
		return k.signer.Sign(nil, content, crypto.Hash(0))
	}
	sum := sha256.Sum256(content)
	return k.signer.Sign(nil, sum[:], crypto.SHA256)
}

// Blob returns a bundle with the signature of content.
func (k *Key) Blob(content []byte) ([]byte, error) {
	signature, err := k.sign(content)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	sum := sha256.Sum256(content)
	return k.bundle(&protobundle.Bundle{Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
		MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
		Signature:     signature,
	}}})
}

// Statement returns a bundle with the signed statement.
func (k *Key) Statement(statement *intoto.Statement) ([]byte, error) {
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("signing a statement: %w", err)
	}
	payload, err := marshal(statement)
	if err != nil {
		return nil, err
	}
	signature, err := k.sign(dsse.PAE(sigstore.StatementType, payload))
	if err != nil {
		return nil, fmt.Errorf("signing a statement: %w", err)
	}
	return k.bundle(&protobundle.Bundle{Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
		Payload: payload, PayloadType: sigstore.StatementType, Signatures: []*protodsse.Signature{{Sig: signature}},
	}}})
}

func (k *Key) bundle(made *protobundle.Bundle) ([]byte, error) {
	made.MediaType = sigstore.BundleType
	made.VerificationMaterial = &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: k.hint}},
	}
	content, err := marshal(made)
	if err != nil {
		return nil, err
	}
	return append(content, '\n'), nil
}

// marshal writes one line. The library inserts random spaces to keep callers from comparing bytes.
func marshal(message proto.Message) ([]byte, error) {
	content, err := protojson.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, content); err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return out.Bytes(), nil
}

// Simple returns the signature of an image in the form of cosign 2
// (https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md): the payload, and the
// signature in base64.
func (k *Key) Simple(repository, digest string) (payload []byte, signature string, err error) {
	content := map[string]any{
		"critical": map[string]any{
			"identity": map[string]string{"docker-reference": repository},
			"image":    map[string]string{"docker-manifest-digest": digest},
			"type":     "cosign container image signature",
		},
		"optional": nil,
	}
	if payload, err = json.Marshal(content); err != nil {
		return nil, "", fmt.Errorf("signing the image: %w", err)
	}
	raw, err := k.sign(payload)
	if err != nil {
		return nil, "", fmt.Errorf("signing the image: %w", err)
	}
	return payload, base64.StdEncoding.EncodeToString(raw), nil
}
