package layout

import (
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// Signature is the signature of an image index, in both formats of cosign.
type Signature struct {
	// Bundle is a Sigstore bundle with an attestation of the type PredicateType.
	Bundle                    []byte
	BundleType, PredicateType string
	// Payload and Simple are a signature of cosign 2: the signed payload, and the signature in
	// base64.
	Payload []byte
	Simple  string
}

// Sign adds the signature to a layout: the bundle as a referrer, and the signature of cosign 2 as
// the image with the name sha256-DIGEST.sig.
func Sign(dir string, s Signature) error {
	path, err := layout.FromPath(dir)
	if err != nil {
		return fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	index, err := Index(dir)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	annotations := map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": s.PredicateType}
	if err := refer(path, index, types.MediaType(s.BundleType), s.Bundle, annotations); err != nil {
		return fmt.Errorf("adding the signature to the layout %s: %w", dir, err)
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{
		Layer:       static.NewLayer(s.Payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": s.Simple},
	})
	if err != nil {
		return fmt.Errorf("adding the signature to the layout %s: %w", dir, err)
	}
	if err := path.AppendImage(image, layout.WithAnnotations(map[string]string{specs.AnnotationRefName: SignatureTag(digest)})); err != nil {
		return fmt.Errorf("adding the signature to the layout %s: %w", dir, err)
	}
	return nil
}

// SignatureTag returns the tag of the image with the signature of cosign 2.
func SignatureTag(digest v1.Hash) string {
	return strings.Replace(digest.String(), ":", "-", 1) + ".sig"
}
