package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	versioned "github.com/opencontainers/image-spec/specs-go"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"
)

// The labels and media types that identify the kind of an image.
const (
	catalogLabel  = "operators.operatorframework.io.index.configs.v1"
	formatLabel   = "operators.operatorframework.io.bundle.mediatype.v1"
	chartConfig   = "application/vnd.cncf.helm.config.v1+json"
	chartContent  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	annotations   = "metadata/annotations.yaml"
	catalogFolder = "configs"
	plainFolder   = "manifests"
)

// Image is an image with one layer, before it is pushed.
type Image struct {
	// Kind is the kind of content: "catalog", "bundle", "chart" or "plain manifests".
	Kind             string
	config, layer    []byte
	manifest         []byte
	configOf, layers specs.Descriptor
}

// FromFolder makes an image of a folder. A chart has Chart.yaml, a bundle has
// metadata/annotations.yaml, and a catalog has documents of package operators.operatorframework.io.
// Every other folder is plain manifests. Equal folders give equal images.
func FromFolder(dir string) (*Image, error) {
	files, err := read(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case files["Chart.yaml"] != nil:
		return chart(files)
	case files[annotations] != nil:
		return bundle(files)
	case isCatalog(files):
		return made("catalog", map[string]string{catalogLabel: "/" + catalogFolder}, below(catalogFolder, files))
	}
	return made("plain manifests", map[string]string{formatLabel: "plain+v0"}, below(plainFolder, files))
}

func read(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)], err = os.ReadFile(name)
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New("there is no file in it")
	}
	if err != nil {
		return nil, fmt.Errorf("making an image of %s: %w", dir, err)
	}
	return files, nil
}

func below(folder string, files map[string][]byte) map[string][]byte {
	moved := map[string][]byte{}
	for name, content := range files {
		moved[path.Join(folder, name)] = content
	}
	return moved
}

func isCatalog(files map[string][]byte) bool {
	for _, content := range files {
		if bytes.Contains(content, []byte("olm.package")) {
			return true
		}
	}
	return false
}

// bundle makes the image of a bundle. Its annotations are also labels of the image.
func bundle(files map[string][]byte) (*Image, error) {
	var found struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(files[annotations], &found); err != nil {
		return nil, fmt.Errorf("reading %s: %w", annotations, err)
	}
	return made("bundle", found.Annotations, files)
}

func chart(files map[string][]byte) (*Image, error) {
	config, err := yaml.YAMLToJSON(files["Chart.yaml"])
	if err != nil {
		return nil, fmt.Errorf("reading Chart.yaml: %w", err)
	}
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(config, &named); err != nil {
		return nil, fmt.Errorf("reading Chart.yaml: %w", err)
	}
	archive, err := archived(below(named.Name, files))
	if err != nil {
		return nil, err
	}
	return described("chart", config, chartConfig, compressed(archive), chartContent)
}

func made(kind string, labels map[string]string, files map[string][]byte) (*Image, error) {
	archive, err := archived(files)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(specs.Image{
		Platform: specs.Platform{OS: "linux", Architecture: "amd64"},
		Config:   specs.ImageConfig{Labels: labels},
		RootFS:   specs.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(archive)}},
	})
	if err != nil {
		return nil, err
	}
	return described(kind, config, specs.MediaTypeImageConfig, compressed(archive), specs.MediaTypeImageLayerGzip)
}

func described(kind string, config []byte, configType string, layer []byte, layerType string) (*Image, error) {
	image := &Image{
		Kind: kind, config: config, layer: layer,
		configOf: descriptor(config, configType), layers: descriptor(layer, layerType),
	}
	var err error
	image.manifest, err = json.Marshal(specs.Manifest{
		Versioned: versioned.Versioned{SchemaVersion: 2}, MediaType: specs.MediaTypeImageManifest,
		Config: image.configOf, Layers: []specs.Descriptor{image.layers},
	})
	return image, err
}

func descriptor(content []byte, mediaType string) specs.Descriptor {
	return specs.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
}

// Digest returns the digest of the manifest.
func (i *Image) Digest() string { return digest.FromBytes(i.manifest).String() }

// archived packs files in a fixed order and without times.
func archived(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"), Mode: 0o644, Size: int64(len(files[name]))}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func compressed(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	// Writing to memory cannot fail.
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}
