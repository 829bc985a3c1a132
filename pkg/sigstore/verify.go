// Package sigstore verifies Sigstore bundles by a key, or by an identity and a trusted root. It
// makes no requests: bundle, key and trusted root are given.
package sigstore

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"time"

	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

const (
	// LargestBundle bounds a bundle, in bytes.
	LargestBundle = 16 << 20
	// unrelated is a subject that no expression for a workflow or a user matches.
	unrelated = "unrelated subject"
)

// Identity is the signer of bundles with a certificate. Every bundle needs an entry in the
// transparency log, and a time from the log or from a timestamp authority.
type Identity struct {
	// Issuer of the identity token, exact.
	Issuer string
	// Subject of the certificate, exact. SubjectRegexp must match the whole subject. One of them
	// is set.
	Subject, SubjectRegexp string
}

// Signer is the verified signer of a bundle.
type Signer struct {
	// Key is the digest of the public key, sha256:HEX, or empty.
	Key string
	// Issuer and Subject are those of the certificate, or empty.
	Issuer, Subject string
	// Time of the signature, as the log or an authority witnesses it. It is zero for a bundle by key.
	Time time.Time
}

func (s Signer) String() string {
	if s.Key != "" {
		return "key " + s.Key
	}
	return fmt.Sprintf("%s (%s), %s", s.Subject, s.Issuer, s.Time.UTC().Format(time.RFC3339))
}

// Verifier verifies bundles by one rule.
type Verifier struct {
	verifier *verify.Verifier
	rule     verify.PolicyOption
	key      string
}

// ByKey verifies bundles that were signed by the private key of a public key in PEM.
func ByKey(content []byte) (*Verifier, error) {
	public, err := cryptoutils.UnmarshalPEMToPublicKey(content)
	if err != nil {
		return nil, fmt.Errorf("reading the public key: %w", err)
	}
	loaded, err := signature.LoadDefaultVerifier(public)
	if err != nil {
		return nil, fmt.Errorf("reading the public key: %w", err)
	}
	name, err := KeyName(public)
	if err != nil {
		return nil, err
	}
	// The hint of a bundle names a key for lookups. There is one key here, which decides.
	trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(loaded, time.Time{}, time.Time{}), nil
	})
	made, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps())
	if err != nil {
		return nil, err
	}
	return &Verifier{verifier: made, rule: verify.WithKey(), key: name}, nil
}

// KeyName is sha256:HEX of a public key in PKIX form.
func KeyName(public crypto.PublicKey) (string, error) {
	content, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("reading the public key: %w", err)
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// ByIdentity verifies bundles that the identity signed, by the authorities and logs of a trusted
// root (trusted_root.json of Sigstore).
func ByIdentity(trustedRoot []byte, who Identity) (*Verifier, error) {
	trusted, err := root.NewTrustedRootFromJSON(trustedRoot)
	if err != nil {
		return nil, fmt.Errorf("reading the trusted root: %w", err)
	}
	return byIdentity(trusted, who)
}

func byIdentity(trusted root.TrustedMaterial, who Identity) (*Verifier, error) {
	if who.Issuer == "" || (who.Subject == "") == (who.SubjectRegexp == "") {
		return nil, errors.New("an identity has an issuer, and either a subject or a regular expression for it")
	}
	pattern := who.SubjectRegexp
	if pattern != "" {
		// The library finds the expression anywhere in the subject.
		pattern = "^(?:" + pattern + ")$"
		anchored, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("reading the regular expression for the subject: %w", err)
		}
		if anchored.MatchString(unrelated) {
			return nil, fmt.Errorf("the regular expression %q matches unrelated subjects: want one that begins with the address of the repository or ends with the domain of the user", who.SubjectRegexp)
		}
	}
	identity, err := verify.NewShortCertificateIdentity(who.Issuer, "", who.Subject, pattern)
	if err != nil {
		return nil, fmt.Errorf("the identity: %w", err)
	}
	options := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	// A private instance may have no log of certificates.
	if len(trusted.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	made, err := verify.NewVerifier(trusted, options...)
	if err != nil {
		return nil, err
	}
	return &Verifier{verifier: made, rule: verify.WithCertificateIdentity(identity)}, nil
}

// Blob verifies that a bundle is a signature of the content.
func (v *Verifier) Blob(signed, content []byte) (Signer, error) {
	entity, err := parse(signed)
	if err != nil {
		return Signer{}, err
	}
	if entity.GetMessageSignature() == nil {
		return Signer{}, errors.New("the bundle has an attestation, want a signature of the file")
	}
	result, err := v.verify(entity, verify.WithArtifact(bytes.NewReader(content)))
	if err != nil {
		return Signer{}, err
	}
	return v.signer(result), nil
}

// Statement verifies the attestation of a bundle and returns it. The caller compares its subjects
// and its predicate type.
func (v *Verifier) Statement(signed []byte) (*intoto.Statement, Signer, error) {
	entity, err := parse(signed)
	if err != nil {
		return nil, Signer{}, err
	}
	if entity.GetDsseEnvelope() == nil {
		return nil, Signer{}, errors.New("the bundle has no attestation")
	}
	result, err := v.verify(entity, verify.WithoutArtifactUnsafe())
	if err != nil {
		return nil, Signer{}, err
	}
	return result.Statement, v.signer(result), nil
}

func parse(signed []byte) (*bundle.Bundle, error) {
	if len(signed) > LargestBundle {
		return nil, fmt.Errorf("the bundle has %d bytes, allowed are %d", len(signed), LargestBundle)
	}
	entity := &bundle.Bundle{}
	if err := entity.UnmarshalJSON(signed); err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	return entity, nil
}

func (v *Verifier) verify(entity verify.SignedEntity, artifact verify.ArtifactPolicyOption) (*verify.VerificationResult, error) {
	return v.verifier.Verify(entity, verify.NewPolicy(artifact, v.rule))
}

func (v *Verifier) signer(result *verify.VerificationResult) Signer {
	if v.key != "" {
		return Signer{Key: v.key}
	}
	found := Signer{Issuer: result.Signature.Certificate.Issuer, Subject: result.Signature.Certificate.SubjectAlternativeName}
	for _, witnessed := range result.VerifiedTimestamps {
		if found.Time.IsZero() || witnessed.Timestamp.Before(found.Time) {
			found.Time = witnessed.Timestamp
		}
	}
	return found
}
