// Package sigstore verifies Sigstore bundles (v0.3) with a public key. It sends no requests. It
// refuses bundles with a certificate, which are signed by an identity.
package sigstore

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"

	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	// BundleType is the media type of a bundle.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// StatementType is the payload type of in-toto statements.
	StatementType = "application/vnd.in-toto+json"
	// LargestBundle bounds a bundle, in bytes.
	LargestBundle = 16 << 20
)

// Verifier verifies bundles with one key.
type Verifier struct {
	verifier signature.Verifier
	// Key is the name of the key, as KeyName returns it.
	Key string
}

// ByKey returns a verifier of signatures by the private key of a public key in PEM.
func ByKey(content []byte) (*Verifier, error) {
	public, err := cryptoutils.UnmarshalPEMToPublicKey(content)
	if err != nil {
		return nil, fmt.Errorf("reading the public key: %w", err)
	}
	loaded, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("reading the public key: %w", err)
	}
	name, err := KeyName(public)
	if err != nil {
		return nil, err
	}
	return &Verifier{verifier: loaded, Key: name}, nil
}

// KeyName returns sha256:HEX of a public key in PKIX form.
func KeyName(public crypto.PublicKey) (string, error) {
	content, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("reading the public key: %w", err)
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Blob verifies that a bundle is a signature of the content.
func (v *Verifier) Blob(signed, content []byte) error {
	bundle, err := parse(signed)
	if err != nil {
		return err
	}
	found := bundle.GetMessageSignature()
	if found == nil {
		return errors.New("the bundle has no signature of a file")
	}
	return v.verify(found.GetSignature(), content)
}

// Statement verifies the attestation of a bundle and returns it. The caller compares its subjects
// and its predicate type.
func (v *Verifier) Statement(signed []byte) (*intoto.Statement, error) {
	bundle, err := parse(signed)
	if err != nil {
		return nil, err
	}
	envelope := bundle.GetDsseEnvelope()
	if envelope == nil || envelope.GetPayloadType() != StatementType || len(envelope.GetSignatures()) != 1 {
		return nil, fmt.Errorf("the bundle has no attestation of the type %s with one signature", StatementType)
	}
	if err := v.verify(envelope.GetSignatures()[0].GetSig(), dsse.PAE(StatementType, envelope.GetPayload())); err != nil {
		return nil, err
	}
	statement := &intoto.Statement{}
	if err := protojson.Unmarshal(envelope.GetPayload(), statement); err != nil {
		return nil, fmt.Errorf("reading the attestation: %w", err)
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("reading the attestation: %w", err)
	}
	return statement, nil
}

func (v *Verifier) verify(found, content []byte) error {
	if err := v.verifier.VerifySignature(bytes.NewReader(found), bytes.NewReader(content)); err != nil {
		return fmt.Errorf("the signature is not by the key %s, or of other content: %w", v.Key, err)
	}
	return nil
}

// parse parses a bundle. The bundle must be signed with a key.
func parse(signed []byte) (*protobundle.Bundle, error) {
	if len(signed) > LargestBundle {
		return nil, fmt.Errorf("the bundle has %d bytes, allowed are %d", len(signed), LargestBundle)
	}
	bundle := &protobundle.Bundle{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(signed, bundle); err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	if bundle.GetMediaType() != BundleType {
		return nil, fmt.Errorf("the media type of the bundle is %q, want %q", bundle.GetMediaType(), BundleType)
	}
	if bundle.GetVerificationMaterial().GetPublicKey() == nil {
		return nil, errors.New("the bundle was signed by an identity, and only bundles by a key can be verified")
	}
	return bundle, nil
}
