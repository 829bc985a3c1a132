package image

import (
	"path"
	"slices"
	"strings"

	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
)

// Kind is the kind of content of an image, from its labels.
type Kind string

const (
	// Catalog is a file-based catalog, in the folder that its label names.
	Catalog Kind = "catalog"
	// Bundle is a registry+v1 bundle, in the folders manifests and metadata.
	Bundle Kind = "bundle"
	// Chart is the archive of a Helm chart (ChartFile), as pushed by helm push.
	Chart Kind = "chart"
	// Plain is any other image.
	Plain Kind = "plain"
)

// CatalogLabel names the folder of the catalog in its image.
const CatalogLabel = "operators.operatorframework.io.index.configs.v1"

// Labels for the kind of an image.
const (
	catalogLabel   = CatalogLabel
	manifestsLabel = "operators.operatorframework.io.bundle.manifests.v1"
	metadataLabel  = "operators.operatorframework.io.bundle.metadata.v1"
	formatLabel    = "operators.operatorframework.io.bundle.mediatype.v1"
)

const (
	registryV1 = "registry+v1"
	plainV0    = "plain+v0"
)

// ChartFile is the file name of a chart's archive.
const ChartFile = "chart.tgz"

// Media types of a Helm chart in a registry
// (https://helm.sh/docs/topics/registries/#helm-chart-manifest).
const (
	chartConfigType     = "application/vnd.cncf.helm.config.v1+json"
	chartLayerType      = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	chartProvenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// contents returns the kind of an image, the folders to keep, and the folder to read.
func contents(labels map[string]string, limits Limits) (kind Kind, keep []string, root string, err error) {
	u := &unpacker{limits: limits}
	folder := func(label string) string {
		found := strings.TrimSpace(labels[label])
		if err != nil || found == "" {
			return ""
		}
		var cleaned string
		if cleaned, err = u.clean(found); err != nil {
			err = refuse(shortened(found), "the label %s names it; a folder of the image is expected", label)
		}
		return cleaned
	}
	if configs := folder(catalogLabel); configs != "" || err != nil {
		return Catalog, []string{configs}, configs, err
	}
	manifests, metadata := folder(manifestsLabel), folder(metadataLabel)
	switch format := labels[formatLabel]; {
	case err != nil:
		return "", nil, "", err
	case format == plainV0:
		manifests = orElse(manifests, "manifests")
		return Plain, []string{manifests}, manifests, nil
	case format != "" && format != registryV1:
		return "", nil, "", refuse("", "its label %s is %q; allowed are %s and %s", formatLabel, shortened(format), registryV1, plainV0)
	case manifests == "" && metadata == "" && format == "":
		return Plain, []string{"."}, ".", nil
	}
	return Bundle, slices.Compact([]string{orElse(manifests, "manifests"), orElse(metadata, "metadata")}), ".", err
}

func orElse(folder, otherwise string) string {
	if folder == "" {
		return otherwise
	}
	return path.Clean(folder)
}

// layerTypes returns the accepted media types of layers. The compression is detected from the
// content. Foreign layers, which are not stored in the registry, are not accepted.
func layerTypes() []string {
	return []string{
		specs.MediaTypeImageLayer, specs.MediaTypeImageLayerGzip, specs.MediaTypeImageLayerZstd,
		manifest.DockerV2SchemaLayerMediaTypeUncompressed, manifest.DockerV2Schema2LayerMediaType,
	}
}

func chartLayerTypes() []string { return []string{chartLayerType, chartProvenanceType} }

func isChart(m *specs.Manifest) bool { return m.Config.MediaType == chartConfigType }

func configTypes() []string {
	return []string{specs.MediaTypeImageConfig, manifest.DockerV2Schema2ConfigMediaType, chartConfigType}
}

// checkManifest validates a manifest before its blobs are requested.
func checkManifest(m *specs.Manifest, limits Limits) error {
	switch {
	case !slices.Contains(configTypes(), m.Config.MediaType):
		return refuse("", "its configuration has the media type %q; allowed are %s", shortened(m.Config.MediaType), strings.Join(configTypes(), ", "))
	case m.Config.Size < 0 || m.Config.Size > limits.Config:
		return refuse("", "its configuration has %d bytes; at most %d are allowed", m.Config.Size, limits.Config)
	case len(m.Layers) > limits.Layers:
		return refuse("", "it has %d layers; at most %d are allowed", len(m.Layers), limits.Layers)
	}
	var sum int64
	for _, of := range append([]specs.Descriptor{m.Config}, m.Layers...) {
		if err := of.Digest.Validate(); err != nil {
			return &Refused{Reason: "its manifest names an invalid digest", Err: err}
		}
		if of.Size < 0 || of.Size > limits.Download {
			return &Refused{Layer: of.Digest.String(), Reason: refuse("", "it has %d bytes; an image may have at most %d", of.Size, limits.Download).Reason}
		}
		if sum += of.Size; sum > limits.Download {
			return refuse("", "its layers have more than %d bytes", limits.Download)
		}
	}
	allowed := layerTypes()
	if isChart(m) {
		allowed = chartLayerTypes()
	}
	for _, of := range m.Layers {
		if !slices.Contains(allowed, of.MediaType) {
			return &Refused{Layer: of.Digest.String(), Reason: refuse("", "it has the media type %q; allowed are %s", shortened(of.MediaType), strings.Join(allowed, ", ")).Reason}
		}
	}
	return nil
}
