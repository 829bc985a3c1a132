package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/penstock-project/penstock/hack/release/archive"
	"github.com/penstock-project/penstock/hack/release/chart"
	"github.com/penstock-project/penstock/hack/release/layout"
	"github.com/penstock-project/penstock/hack/release/sign"
	"github.com/penstock-project/penstock/pkg/release"
	"github.com/penstock-project/penstock/pkg/sigstore"
)

// signers holds the keys of a release. Each may be absent.
type signers struct {
	key *sign.Key
	// pgp is a file with a secret key of OpenPGP, which signs the chart.
	pgp string
}

// readSigners reads the keys before anything is built. COSIGN_PASSWORD opens the key, as it does for
// cosign.
func readSigners(key, pgp string) (signers, error) {
	made := signers{pgp: pgp}
	if pgp != "" {
		if err := chart.CheckKey(pgp); err != nil {
			return made, err
		}
	}
	if key == "" {
		return made, nil
	}
	content, err := os.ReadFile(key)
	if err != nil {
		return made, fmt.Errorf("reading the private key: %w", err)
	}
	made.key, err = sign.ReadKey(content, os.Getenv("COSIGN_PASSWORD"))
	return made, err
}

// sign signs an otherwise complete release, and verifies it. folder is the layout of the image.
func (s *sources) sign(by *sign.Key, dir, folder string, platforms []platform) error {
	if s.revision == "" {
		return errors.New("signing the release: its commit is unknown without git, and the provenance names it")
	}
	sums, err := os.ReadFile(filepath.Join(dir, release.Checksums))
	if err != nil {
		return fmt.Errorf("signing the release: %w", err)
	}
	files, err := release.ParseSums(sums)
	if err != nil {
		return fmt.Errorf("signing the release: %w", err)
	}
	signed, err := by.Blob(sums)
	if err != nil {
		return err
	}
	modules, err := archive.Sum(filepath.Join(s.root, "go.sum"))
	if err != nil {
		return err
	}
	build := sign.Build{Version: s.version, Modules: modules}
	build.Commit, build.Modified = strings.CutSuffix(s.revision, modified)
	for _, p := range platforms {
		build.Platforms = append(build.Platforms, p.String())
	}
	statement, err := sign.Attest(build, files)
	if err != nil {
		return err
	}
	attested, err := by.Statement(statement)
	if err != nil {
		return err
	}
	if err := s.signImage(by, dir, folder); err != nil {
		return err
	}
	if err := errors.Join(write(filepath.Join(dir, release.Signature), signed), write(filepath.Join(dir, release.Provenance), attested)); err != nil {
		return err
	}
	verifier, err := sigstore.ByKey(by.Public)
	if err != nil {
		return err
	}
	for _, step := range release.Verify(dir, verifier, release.Wanted{}) {
		if step.Err != nil {
			return fmt.Errorf("verifying the %s of the release: %w", step.Name, step.Err)
		}
	}
	return nil
}

// signImage adds signatures to the layout, and packs the added files into a separate archive.
func (s *sources) signImage(by *sign.Key, dir, folder string) error {
	before, err := archive.Folder(folder, "image")
	if err != nil {
		return err
	}
	index, err := layout.Index(folder)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("signing the image: %w", err)
	}
	made := layout.Signature{BundleType: sigstore.BundleType, PredicateType: release.SignatureType}
	if made.Bundle, err = by.Statement(&intoto.Statement{
		Type: intoto.StatementTypeUri, PredicateType: release.SignatureType, Predicate: &structpb.Struct{},
		Subject: []*intoto.ResourceDescriptor{{Digest: map[string]string{digest.Algorithm: digest.Hex}}},
	}); err != nil {
		return err
	}
	if made.Payload, made.Simple, err = by.Simple(imageRepository, digest.String()); err != nil {
		return err
	}
	if err := layout.Sign(folder, made); err != nil {
		return err
	}
	after, err := archive.Folder(folder, "image")
	if err != nil {
		return err
	}
	added := slices.DeleteFunc(after, func(f archive.File) bool {
		return f.Name != "image/index.json" && slices.Contains(before, f)
	})
	return archive.Write(filepath.Join(dir, "penstock_"+s.version+release.ImageSignaturesSuffix), added, s.created)
}
