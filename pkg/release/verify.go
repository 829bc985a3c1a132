// Package release verifies the folder of a release: the signature of its checksums, every file, the
// provenance and the image.
package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"

	"github.com/penstock-project/penstock/pkg/sigstore"
)

// The names of files of a release.
const (
	// Checksums lists the SHA-256 of each file, as sha256sum prints it.
	Checksums = "checksums.txt"
	// Signature is a Sigstore bundle of Checksums.
	Signature = Checksums + ".sigstore.json"
	// Provenance is a Sigstore bundle of an in-toto statement about each file.
	Provenance = "provenance.intoto.jsonl"
	// ImageSuffix is the end of the name of the image's archive, after the version.
	ImageSuffix = "_image.tar.gz"
	// ImageSignaturesSuffix ends the name of the archive with the signatures of the image. It is
	// unpacked over the image.
	ImageSignaturesSuffix = "_image_signatures.tar.gz"
	// ChartSignatureSuffix ends the name of Helm's signature of the chart.
	ChartSignatureSuffix = ".tgz.prov"
)

const (
	// ProvenanceType is the predicate type of Provenance.
	ProvenanceType = "https://slsa.dev/provenance/v1"
	// SignatureType is the predicate type of a signature of an image, as cosign writes it.
	SignatureType = "https://sigstore.dev/cosign/sign/v1"
	// largestText bounds the checksums and each blob of the archive of signatures, in bytes.
	largestText = 4 << 20
)

// Signed reports whether a file contains signatures. Checksums excludes such files, so that a
// commit gives the same Checksums with any key.
func Signed(name string) bool {
	return name == Checksums || name == Signature || name == Provenance ||
		strings.HasSuffix(name, ImageSignaturesSuffix) || strings.HasSuffix(name, ChartSignatureSuffix)
}

// Wanted is the builder and the source that the provenance must name. An empty field allows any.
type Wanted struct {
	// Builder is the id of the builder.
	Builder string
	// Source is the repository, for instance https://github.com/penstock-project/penstock.
	Source string
}

// Step is the result of one verification.
type Step struct {
	Name  string `json:"name"`
	Found string `json:"found"`
	// Err is the reason why the step failed.
	Err error `json:"-"`
	// Error is the text of Err.
	Error string `json:"error,omitempty"`
}

// Verify verifies a folder. Each step is independent, except that no file is verified without a
// valid signature of Checksums.
func Verify(dir string, by *sigstore.Verifier, wanted Wanted) []Step {
	v := &verification{dir: dir, by: by, wanted: wanted}
	var steps []Step
	for _, step := range []struct {
		name string
		run  func() (string, error)
	}{
		{"signature", v.signature}, {"files", v.files}, {"provenance", v.provenance}, {"image", v.image},
	} {
		found, err := step.run()
		made := Step{Name: step.name, Found: found, Err: err}
		if err != nil {
			made.Error = err.Error()
		}
		steps = append(steps, made)
	}
	return steps
}

// Failing is true when a step failed.
func Failing(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return s.Err != nil })
}

type verification struct {
	dir    string
	by     *sigstore.Verifier
	wanted Wanted
	// sums holds the signed digest of each file, in hexadecimal. It is nil without a valid
	// signature.
	sums map[string]string
	// good holds the names of files that match their digest.
	good map[string]bool
}

var errUnsigned = errors.New("not verified, because the signature of " + Checksums + " is not")

func (v *verification) signature() (string, error) {
	content, err := v.read(Checksums, largestText)
	if err != nil {
		return "", err
	}
	signed, err := v.read(Signature, sigstore.LargestBundle)
	if err != nil {
		return "", err
	}
	if err := v.by.Blob(signed, content); err != nil {
		return "", fmt.Errorf("verifying %s: %w", Signature, err)
	}
	sums, err := ParseSums(content)
	if err != nil {
		return "", err
	}
	v.sums = sums
	return fmt.Sprintf("%s is signed by the key %s", Checksums, v.by.Key), nil
}

func (v *verification) files() (string, error) {
	if v.sums == nil {
		return "", errUnsigned
	}
	entries, err := os.ReadDir(v.dir)
	if err != nil {
		return "", fmt.Errorf("listing the release: %w", err)
	}
	var failed []error
	for _, entry := range entries {
		if name := entry.Name(); v.sums[name] == "" && !Signed(name) {
			failed = append(failed, fmt.Errorf("%s is not in %s: it is no file of the release", name, Checksums))
		}
	}
	v.good = map[string]bool{}
	for name, want := range v.sums {
		found, err := v.sum(name)
		switch {
		// A user may download the files for one platform only.
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failed = append(failed, err)
		case found != want:
			failed = append(failed, fmt.Errorf("%s has the SHA-256 %s, want %s", name, found, want))
		default:
			v.good[name] = true
		}
	}
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(v.good) == 0 {
		failed = append(failed, fmt.Errorf("the folder has none of the files that %s names", Checksums))
	}
	if len(failed) > 0 {
		return "", errors.Join(failed...)
	}
	return fmt.Sprintf("%d of %d files are there and have their checksums", len(v.good), len(v.sums)), nil
}

// image verifies the signatures of the image if the folder has both archives.
func (v *verification) image() (string, error) {
	if v.sums == nil {
		return "", errUnsigned
	}
	var archives []string
	for name := range v.sums {
		if strings.HasSuffix(name, ImageSuffix) {
			archives = append(archives, name)
		}
	}
	if len(archives) > 1 {
		slices.Sort(archives)
		return "", fmt.Errorf("%s names %d images, want 1: %s", Checksums, len(archives), strings.Join(archives, ", "))
	}
	if len(archives) == 0 || !v.has(archives[0]) {
		return "the folder has no image", nil
	}
	archive := archives[0]
	if !v.good[archive] {
		return "", fmt.Errorf("%s is not read, because it does not have its checksum", archive)
	}
	signatures := strings.TrimSuffix(archive, ImageSuffix) + ImageSignaturesSuffix
	image, err := v.layout(archive, largestImage)
	if err != nil {
		return "", err
	}
	digest, err := image.digest()
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", archive, err)
	}
	if !v.has(signatures) {
		return digest + "; its signatures are not in the folder", nil
	}
	signed, err := v.layout(signatures, largestSignatures)
	if err != nil {
		return "", err
	}
	content, err := signed.bundle(digest)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", signatures, err)
	}
	statement, err := v.by.Statement(content)
	if err != nil {
		return "", fmt.Errorf("verifying the signature of the image in %s: %w", signatures, err)
	}
	if statement.GetPredicateType() != SignatureType {
		return "", fmt.Errorf("the predicate type of the signature of the image is %q, want %q", statement.GetPredicateType(), SignatureType)
	}
	if !slices.ContainsFunc(statement.GetSubject(), func(s *intoto.ResourceDescriptor) bool {
		return "sha256:"+s.GetDigest()["sha256"] == digest
	}) {
		return "", fmt.Errorf("the signature in %s is not of the image %s", signatures, digest)
	}
	return fmt.Sprintf("%s is signed by the key %s", digest, v.by.Key), nil
}

func (v *verification) layout(name string, largest int64) (layout, error) {
	file, err := v.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found, err := readLayout(file, largest)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return found, nil
}
