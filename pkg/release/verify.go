// Package release verifies the folder of a release: the signature of its checksums, every file, the
// provenance and the image.
package release

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/penstock-project/penstock/pkg/sigstore"
)

// Names of files of a release.
const (
	// Checksums lists the SHA-256 of each file, as sha256sum prints it.
	Checksums = "checksums.txt"
	// Signature is a Sigstore bundle of Checksums.
	Signature = Checksums + ".sigstore.json"
	// Provenance is a Sigstore bundle of an in-toto statement about each file.
	Provenance = "provenance.intoto.jsonl"
	// ImageSuffix ends the name of the archive of the image, which follows the version.
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

// Signed is true for files that sign others. Checksums leaves them out, so that the same commit
// makes the same Checksums whoever signs it.
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

// Step is one thing that was verified.
type Step struct {
	Name  string `json:"name"`
	Found string `json:"found"`
	// Err is the reason why it is not verified.
	Err error `json:"-"`
	// Error is the text of Err.
	Error string `json:"error,omitempty"`
}

// Verify verifies a folder. Each step stands for itself, but no file counts when the signature of
// Checksums does not.
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
	// sums has the signed digest of each file, in hexadecimal. It is nil without a good signature.
	sums map[string]string
}

var errUnsigned = errors.New("not verified, because the signature of " + Checksums + " is not")

// signature verifies Checksums and reads it.
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

// files compares every file of the folder with its checksum.
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
	there := 0
	for name, want := range v.sums {
		found, err := sum(filepath.Join(v.dir, name))
		switch {
		// A user downloads the files for one platform.
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failed = append(failed, err)
		case found != want:
			failed = append(failed, fmt.Errorf("%s has the SHA-256 %s, want %s", name, found, want))
		default:
			there++
		}
	}
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if there == 0 {
		failed = append(failed, fmt.Errorf("the folder has none of the files that %s names", Checksums))
	}
	if len(failed) > 0 {
		return "", errors.Join(failed...)
	}
	return fmt.Sprintf("%d of %d files are there and have their checksums", there, len(v.sums)), nil
}

// provenance verifies that the same signer attests each file, and which builder and source.
func (v *verification) provenance() (string, error) {
	if v.sums == nil {
		return "", errUnsigned
	}
	signed, err := v.read(Provenance, sigstore.LargestBundle)
	if err != nil {
		return "", err
	}
	statement, err := v.by.Statement(signed)
	if err != nil {
		return "", fmt.Errorf("verifying %s: %w", Provenance, err)
	}
	if statement.GetPredicateType() != ProvenanceType {
		return "", fmt.Errorf("the predicate type of %s is %q, want %q", Provenance, statement.GetPredicateType(), ProvenanceType)
	}
	attested := map[string]string{}
	for _, subject := range statement.GetSubject() {
		attested[subject.GetName()] = subject.GetDigest()["sha256"]
	}
	for name, want := range v.sums {
		if attested[name] != want {
			return "", fmt.Errorf("%s has the SHA-256 %q for %s, and %s has %s", Provenance, attested[name], name, Checksums, want)
		}
	}
	builder, source, err := origin(statement)
	if err != nil {
		return "", err
	}
	if v.wanted.Builder != "" && builder != v.wanted.Builder {
		return "", fmt.Errorf("the builder is %q, want %q", builder, v.wanted.Builder)
	}
	if v.wanted.Source != "" && !ofRepository(source, v.wanted.Source) {
		return "", fmt.Errorf("the source is %q, want %q", source, v.wanted.Source)
	}
	return fmt.Sprintf("made by %s from %s", builder, source), nil
}

// origin is the builder of a statement, and its source: the dependency with a commit.
func origin(statement *intoto.Statement) (builder, source string, err error) {
	content, err := statement.GetPredicate().MarshalJSON()
	if err != nil {
		return "", "", fmt.Errorf("reading the predicate of %s: %w", Provenance, err)
	}
	var predicate struct {
		BuildDefinition struct {
			ResolvedDependencies []struct {
				URI    string            `json:"uri"`
				Digest map[string]string `json:"digest"`
			} `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
		} `json:"runDetails"`
	}
	if err := json.Unmarshal(content, &predicate); err != nil {
		return "", "", fmt.Errorf("reading the predicate of %s: %w", Provenance, err)
	}
	builder = predicate.RunDetails.Builder.ID
	for _, dependency := range predicate.BuildDefinition.ResolvedDependencies {
		if commit := dependency.Digest["gitCommit"]; commit != "" {
			source = dependency.URI + ", commit " + commit
			break
		}
	}
	if builder == "" || source == "" {
		return "", "", fmt.Errorf("%s names no builder, or no commit", Provenance)
	}
	return builder, source, nil
}

// ofRepository compares a source, such as git+https://example.com/a@refs/tags/v1, with a repository.
func ofRepository(source, repository string) bool {
	rest, is := strings.CutPrefix(strings.TrimPrefix(source, "git+"), strings.TrimSuffix(repository, ".git"))
	rest = strings.TrimPrefix(rest, ".git")
	return is && (strings.HasPrefix(rest, "@") || strings.HasPrefix(rest, ","))
}

// image verifies the signatures of the image, when the folder has both.
func (v *verification) image() (string, error) {
	if v.sums == nil {
		return "", errUnsigned
	}
	var archive string
	for name := range v.sums {
		if strings.HasSuffix(name, ImageSuffix) {
			archive = name
		}
	}
	signatures := strings.TrimSuffix(archive, ImageSuffix) + ImageSignaturesSuffix
	if archive == "" || !v.has(archive) {
		return "the folder has no image", nil
	}
	image, err := v.layout(archive)
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
	signed, err := v.layout(signatures)
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

// layout has the small files of an archive with a layout of the OCI, by path.
type layout map[string][]byte

func (v *verification) layout(name string) (layout, error) {
	file, err := os.Open(filepath.Join(v.dir, name))
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	found, total := layout{}, int64(0)
	for from := tar.NewReader(unpacked); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if header.Typeflag != tar.TypeReg || header.Size > largestText {
			continue
		}
		if total += header.Size; total > sigstore.LargestBundle {
			return nil, fmt.Errorf("reading %s: its manifests have more than %d bytes", name, sigstore.LargestBundle)
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		found[path.Clean(header.Name)] = content
	}
}

// blob returns content that has the digest.
func (l layout) blob(digest string) ([]byte, error) {
	hash, is := strings.CutPrefix(digest, "sha256:")
	content, there := l[path.Join("image/blobs/sha256", hash)]
	if !is || !there {
		return nil, fmt.Errorf("there is no blob %s", digest)
	}
	if found := sha256.Sum256(content); hex.EncodeToString(found[:]) != hash {
		return nil, fmt.Errorf("the blob %s has other content", digest)
	}
	return content, nil
}

func (l layout) manifests() ([]specs.Descriptor, error) {
	var index specs.Index
	if err := json.Unmarshal(l["image/index.json"], &index); err != nil {
		return nil, fmt.Errorf("reading image/index.json: %w", err)
	}
	return index.Manifests, nil
}

// digest is that of the index of all platforms.
func (l layout) digest() (string, error) {
	manifests, err := l.manifests()
	if err != nil {
		return "", err
	}
	for _, m := range manifests {
		if m.MediaType == specs.MediaTypeImageIndex {
			_, err := l.blob(m.Digest.String())
			return m.Digest.String(), err
		}
	}
	return "", errors.New("there is no index of an image")
}

// bundle is the Sigstore bundle that refers to the digest.
func (l layout) bundle(digest string) ([]byte, error) {
	manifests, err := l.manifests()
	if err != nil {
		return nil, err
	}
	for _, m := range manifests {
		if m.ArtifactType != sigstore.BundleType {
			continue
		}
		content, err := l.blob(m.Digest.String())
		if err != nil {
			return nil, err
		}
		var referrer specs.Manifest
		if err := json.Unmarshal(content, &referrer); err != nil {
			return nil, fmt.Errorf("reading the manifest %s: %w", m.Digest, err)
		}
		if referrer.Subject != nil && referrer.Subject.Digest.String() == digest && len(referrer.Layers) == 1 {
			return l.blob(referrer.Layers[0].Digest.String())
		}
	}
	return nil, fmt.Errorf("there is no Sigstore bundle of %s", digest)
}

func (v *verification) has(name string) bool {
	info, err := os.Stat(filepath.Join(v.dir, name))
	return err == nil && info.Mode().IsRegular()
}

func (v *verification) read(name string, largest int64) ([]byte, error) {
	file, err := os.Open(filepath.Join(v.dir, name))
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	if int64(len(content)) > largest {
		return nil, fmt.Errorf("%s has more than %d bytes", name, largest)
	}
	return content, nil
}

// ParseSums reads the form of sha256sum. Names are of files in the folder itself.
func ParseSums(content []byte) (map[string]string, error) {
	sums, n := map[string]string{}, 0
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		n++
		hash, name, is := strings.Cut(lines.Text(), "  ")
		raw, err := hex.DecodeString(hash)
		if !is || err != nil || len(raw) != sha256.Size || name != filepath.Base(name) || name == "." || name == ".." || sums[name] != "" {
			return nil, fmt.Errorf("line %d of %s is %q: want the SHA-256, two spaces and the name of a file, each file once", n, Checksums, lines.Text())
		}
		sums[name] = hash
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("%s is empty", Checksums)
	}
	return sums, nil
}

func sum(file string) (string, error) {
	content, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer content.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return "", fmt.Errorf("reading %s: %w", file, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
