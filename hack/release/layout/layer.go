package layout

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"encoding/pem"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// file is a file of a layer. The name of a folder ends in a slash.
type file struct {
	name    string
	mode    int64
	content []byte
}

// baseLayer returns the layer of each image with all files but the program.
func baseLayer(created time.Time) (v1.Layer, error) {
	const users = "root:x:0:0:root:/:/nologin\npenstock:x:65532:65532:penstock:/:/nologin\n"
	const groups = "root:x:0:\npenstock:x:65532:\n"
	return layerOf([]file{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: []byte(groups)},
		{name: "etc/passwd", mode: 0o644, content: []byte(users)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()},
		{name: "tmp/", mode: 0o1777},
	}, created)
}

// authorities returns Mozilla's certificate authorities for registries, from the module
// golang.org/x/crypto/x509roots. It omits authorities with constraints, because a file of
// certificates cannot express them.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		// A write to memory does not fail.
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}
	return out.Bytes()
}

// layerOf packs files in their order. All files belong to root and have the same time.
func layerOf(files []file, created time.Time) (v1.Layer, error) {
	var out bytes.Buffer
	packed := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: created.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if f.name[len(f.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := packed.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := packed.Write(f.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	if err := packed.Close(); err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(out.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func blob(path layout.Path, content []byte, mediaType types.MediaType) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(content))
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: mediaType, Digest: digest, Size: size}, path.WriteBlob(digest, io.NopCloser(bytes.NewReader(content)))
}
