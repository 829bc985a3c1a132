package verification

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// signatureType is the predicate type of a signature of an image, as cosign writes it.
	signatureType = "https://sigstore.dev/cosign/sign/v1"
	// mostReasons bounds the reasons of a refusal, and longestReason each of them, in bytes.
	mostReasons, longestReason = 5, 400
)

// Verify returns the keys and identities that signed the image with a digest (sha256:HEX), sorted.
// The error is the reason why the bundles do not satisfy a rule. It checks ctx between bundles.
func (r *Rules) Verify(ctx context.Context, bundles [][]byte, digest string) ([]string, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil || !strings.HasPrefix(digest, "sha256:") || len(raw) != 32 {
		return nil, fmt.Errorf("the digest %s is of another algorithm than sha256", digest)
	}
	var all []string
	for _, one := range r.rules {
		signers, err := r.policy.verify(ctx, one, bundles, raw)
		if err != nil {
			return nil, fmt.Errorf("rules[%d]: %w", one.number, err)
		}
		all = append(all, signers...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (p *Policy) verify(ctx context.Context, one rule, bundles [][]byte, digest []byte) ([]string, error) {
	if len(bundles) == 0 {
		return nil, errors.New("the image has no Sigstore bundle")
	}
	var signers, reasons []string
	for _, content := range bundles {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		signer, err := p.bundle(one, content, digest)
		if err == nil {
			signers = append(signers, signer)
		} else if len(reasons) < mostReasons {
			reasons = append(reasons, text.Clip(err.Error(), longestReason))
		}
	}
	if len(signers) > 0 {
		return signers, nil
	}
	return nil, errors.New(strings.Join(reasons, "; "))
}

// bundle returns the signer of one bundle, if the bundle satisfies the rule.
func (p *Policy) bundle(one rule, content, digest []byte) (string, error) {
	var errs []error
	for _, by := range one.signers {
		statement, name, err := p.statement(by, content, digest)
		if err == nil {
			err = one.satisfied(statement, digest)
		}
		if err == nil {
			return name, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// satisfied compares a signed statement with the rule.
func (r *rule) satisfied(statement *intoto.Statement, digest []byte) error {
	if !slices.ContainsFunc(statement.GetSubject(), func(s *intoto.ResourceDescriptor) bool {
		return s.GetDigest()["sha256"] == hex.EncodeToString(digest)
	}) {
		return errors.New("the bundle is of another image")
	}
	if r.Provenance != nil {
		return r.Provenance.compare(statement)
	}
	if found := statement.GetPredicateType(); found != signatureType {
		return fmt.Errorf("the bundle is an attestation of type %q, and a signature of type %q is expected", found, signatureType)
	}
	return nil
}

// statement verifies a bundle with a signer, and returns the signed statement and the signer's
// name. Bundles are untrusted: if a library panics on one, the bundle counts as invalid, and the
// process continues.
func (p *Policy) statement(by signer, content, digest []byte) (signed *intoto.Statement, name string, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			signed, name, err = nil, "", fmt.Errorf("reading the bundle: %v", caught)
		}
	}()
	if by.key != nil {
		statement, err := by.key.Statement(content)
		return statement, "key " + by.key.Key, err
	}
	parsed := &bundle.Bundle{}
	if err := parsed.UnmarshalJSON(content); err != nil {
		return nil, "", fmt.Errorf("reading the bundle: %w", err)
	}
	if !parsed.MinVersion("v0.3") {
		return nil, "", fmt.Errorf("the media type of the bundle is %q, and version 0.3 is expected", parsed.GetMediaType())
	}
	result, err := p.roots.Verify(parsed, verify.NewPolicy(verify.WithArtifactDigest("sha256", digest), verify.WithCertificateIdentity(*by.identity)))
	if err != nil {
		return nil, "", fmt.Errorf("verifying by %s: %w", p.rootName, err)
	}
	if result.Statement == nil || result.Signature == nil || result.Signature.Certificate == nil {
		return nil, "", errors.New("the bundle has no statement that an identity signed")
	}
	certificate := result.Signature.Certificate
	// The subject of a workflow ends with the commit's tag or branch, which differs between
	// versions.
	subject, _, _ := strings.Cut(certificate.SubjectAlternativeName, "@refs/")
	return result.Statement, fmt.Sprintf("identity %s of %s", subject, certificate.Issuer), nil
}
