package plane

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// ProgramImage returns an image of a static program, which runs as an unprivileged user. args
// precede the arguments of a container.
func ProgramImage(program string, args ...string) (v1.Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("making an image: %w", err)
	}
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	// Writing to memory cannot fail.
	_ = w.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777})
	_ = w.WriteHeader(&tar.Header{Name: "program", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))})
	_, _ = w.Write(content)
	_ = w.Close()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
	if err != nil {
		return nil, fmt.Errorf("making the layer of %s: %w", program, err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("making the image of %s: %w", program, err)
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH,
		RootFS: v1.RootFS{Type: "layers", DiffIDs: diffIDs(image)},
		Config: v1.Config{Entrypoint: append([]string{"/program"}, args...), User: "65532:65532"}})
}

// diffIDs returns the diff IDs of the layers of an image in memory.
func diffIDs(image v1.Image) []v1.Hash {
	file, err := image.ConfigFile()
	if err != nil {
		return nil
	}
	return file.RootFS.DiffIDs
}
