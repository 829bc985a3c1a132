package layout

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Index returns the image index of a layout.
func Index(dir string) (v1.ImageIndex, error) {
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	for _, descriptor := range manifest.Manifests {
		if descriptor.MediaType.IsIndex() {
			return outer.ImageIndex(descriptor.Digest)
		}
	}
	return nil, fmt.Errorf("reading the layout %s: it has no index", dir)
}

// Image returns the image of a platform in a layout, with Go's names of the platform.
func Image(dir, system, architecture string) (v1.Image, error) {
	index, err := Index(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	for _, descriptor := range manifest.Manifests {
		if p := descriptor.Platform; p != nil && p.OS == system && p.Architecture == architecture {
			return index.Image(descriptor.Digest)
		}
	}
	return nil, fmt.Errorf("reading the layout %s: it has no image for %s/%s", dir, system, architecture)
}

// Unpack creates a folder and unpacks the files of all layers into it, like a container runtime.
func Unpack(image v1.Image, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unpacking an image: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpacking an image: %w", err)
	}
	defer root.Close()
	content := mutate.Extract(image)
	defer content.Close()
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = put(root, header, files)
		}
		if err != nil {
			return fmt.Errorf("unpacking an image into %s: %w", dir, err)
		}
	}
}

func put(root *os.Root, header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(header.Name, header.FileInfo().Mode().Perm())
	case tar.TypeReg:
		file, err := root.OpenFile(header.Name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, header.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	}
	return fmt.Errorf("%s is neither a file nor a folder", header.Name)
}
