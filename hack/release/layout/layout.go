// Package layout creates images of a static program, as a folder in OCI layout that any registry
// client can push. Equal programs give equal folders, byte for byte.
//
// An image contains the program, the certificate authorities for registries, and the names of two
// users. It has no shell, and no file in it belongs to the user that it runs as.
package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// User is the default user and group of the image. runAsUser in artifacts/deploy names the same
	// user.
	User = "65532:65532"
	// Entrypoint is the path of the program.
	Entrypoint = "/penstock"
	// BOMType is the media type of a bill of materials.
	BOMType = "application/vnd.cyclonedx+json"
)

// Program is the program of the image for one platform.
type Program struct {
	// OS and Architecture have Go's names, such as linux and amd64.
	OS, Architecture string
	// Path is the file of the static program.
	Path string
	// BOM is its bill of materials, CycloneDX in JSON. It becomes a referrer of the image.
	BOM []byte
}

// Options describe the image.
type Options struct {
	// Version is the version of the program. It becomes the name of the image within the layout,
	// and a label.
	Version string
	// Revision is the commit; it may be empty.
	Revision string
	// Created is the time of all files in the image. It must be the time of the sources, so that
	// builds are reproducible.
	Created time.Time
}

// Write creates the folder, which must be missing or empty. It returns the digest of the index of
// all platforms, which a Deployment names.
func Write(dir string, programs []Program, o Options) (v1.Hash, error) {
	if len(programs) == 0 {
		return v1.Hash{}, errors.New("making an image: there is no program for any platform")
	}
	if found, err := os.ReadDir(dir); err == nil && len(found) > 0 {
		return v1.Hash{}, fmt.Errorf("making an image: folder %s is not empty", dir)
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("making the layout %s: %w", dir, err)
	}
	base, err := baseLayer(o.Created)
	if err != nil {
		return v1.Hash{}, err
	}
	var platforms []mutate.IndexAddendum
	for _, program := range programs {
		image, err := imageOf(program, base, o)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("making the image for %s/%s: %w", program.OS, program.Architecture, err)
		}
		platforms = append(platforms, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: program.OS, Architecture: program.Architecture}}})
	}
	index := mutate.IndexMediaType(mutate.AppendManifests(empty.Index, platforms...), types.OCIImageIndex)
	if o.Version != "" {
		index = mutate.Annotations(index, annotations(o)).(v1.ImageIndex)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{specs.AnnotationRefName: o.Version})); err != nil {
		return v1.Hash{}, fmt.Errorf("writing the layout %s: %w", dir, err)
	}
	for i, program := range programs {
		if err := refer(path, platforms[i].Add, BOMType, program.BOM, nil); err != nil {
			return v1.Hash{}, fmt.Errorf("writing the bill of materials for %s/%s: %w", program.OS, program.Architecture, err)
		}
	}
	return index.Digest()
}

// annotations returns the annotations about the origin of an image.
func annotations(o Options) map[string]string {
	found := map[string]string{
		specs.AnnotationTitle:    "penstock",
		specs.AnnotationVersion:  o.Version,
		specs.AnnotationLicenses: "Apache-2.0",
		specs.AnnotationSource:   "https://github.com/penstock-project/penstock",
		specs.AnnotationCreated:  o.Created.UTC().Format(time.RFC3339),
	}
	if o.Revision != "" {
		found[specs.AnnotationRevision] = o.Revision
	}
	return found
}

func imageOf(program Program, base v1.Layer, o Options) (v1.Image, error) {
	content, err := os.ReadFile(program.Path)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf([]file{{name: Entrypoint[1:], mode: 0o755, content: content}}, o.Created)
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: program.OS, Architecture: program.Architecture, Created: v1.Time{Time: o.Created.UTC()},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: User, Entrypoint: []string{Entrypoint}, WorkingDir: "/", Env: []string{"PATH=/"},
			ExposedPorts: map[string]struct{}{"8443/tcp": {}, "8444/tcp": {}}, Labels: annotations(o),
		},
	})
	if err != nil {
		return nil, err
	}
	image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := func(what string) v1.History {
		return v1.History{Created: v1.Time{Time: o.Created.UTC()}, CreatedBy: "hack/release", Comment: what}
	}
	return mutate.Append(image,
		mutate.Addendum{Layer: base, History: history("users, authorities, license"), MediaType: types.OCILayer},
		mutate.Addendum{Layer: layer, History: history("the program"), MediaType: types.OCILayer})
}

// refer adds content as an artifact whose subject is an image or an index. A copy of the image with
// its referrers includes it.
func refer(path layout.Path, of partial.Describable, kind types.MediaType, content []byte, annotations map[string]string) error {
	subject, err := partial.Descriptor(of)
	if err != nil {
		return err
	}
	config, err := blob(path, specs.DescriptorEmptyJSON.Data, types.MediaType(specs.MediaTypeEmptyJSON))
	if err != nil {
		return err
	}
	layer, err := blob(path, content, kind)
	if err != nil {
		return err
	}
	// The library's manifest type lacks artifactType, by which clients find referrers.
	manifest, err := json.Marshal(struct {
		v1.Manifest
		ArtifactType string `json:"artifactType"`
	}{v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: config, Layers: []v1.Descriptor{layer}, Subject: subject, Annotations: annotations}, string(kind)})
	if err != nil {
		return err
	}
	written, err := blob(path, manifest, types.OCIManifestSchema1)
	if err != nil {
		return err
	}
	written.ArtifactType = string(kind)
	return path.AppendDescriptor(written)
}
