package release

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/penstock-project/penstock/pkg/sigstore"
)

const (
	// largestImage bounds the unpacked archive of the image, in bytes. Its checksum is signed.
	largestImage = 4 << 30
	// largestSignatures bounds the unpacked archive of signatures, in bytes. This archive is not
	// signed.
	largestSignatures = 2 * sigstore.LargestBundle
	mostFiles         = 10_000
)

var errTooLarge = errors.New("unpacked, it is too large")

// layout holds the small files of an archive with an OCI layout, by path.
type layout map[string][]byte

// readLayout unpacks at most largest bytes of a packed archive.
func readLayout(packed io.Reader, largest int64) (layout, error) {
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	found, total := layout{}, int64(0)
	from := tar.NewReader(&atMost{from: unpacked, left: largest})
	for files := 0; ; files++ {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if files == mostFiles {
			return nil, fmt.Errorf("it has more than %d files", mostFiles)
		}
		if header.Typeflag != tar.TypeReg || header.Size > largestText {
			continue
		}
		if total += header.Size; total > sigstore.LargestBundle {
			return nil, fmt.Errorf("its manifests have more than %d bytes", sigstore.LargestBundle)
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return nil, err
		}
		found[path.Clean(header.Name)] = content
	}
}

// atMost reads a number of bytes, and fails if there are more. With a plain limited reader, the
// limit would look like the end of the archive.
type atMost struct {
	from io.Reader
	left int64
}

func (a *atMost) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

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
