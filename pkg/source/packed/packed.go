// Package packed renders the content of an image: a registry+v1 bundle, a Helm chart, or plain
// manifests. Labels and media types decide, as in OLM. An image without labels is a bundle if it
// has the folders of a bundle.
package packed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/bundle"
	"github.com/penstock-project/penstock/pkg/source/chart"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// Format is the format of an image's content.
type Format string

const (
	Bundle    Format = "registry+v1 bundle"
	Chart     Format = "Helm chart"
	Manifests Format = "plain manifests"
)

// annotations is a file of a bundle that exists also if the image has no labels.
const annotations = "metadata/annotations.yaml"

// FormatOf returns the format of an image's content. A catalog is an error, because it has no
// manifests.
func FormatOf(kind image.Kind, fsys fs.FS) (Format, error) {
	switch kind {
	case image.Bundle:
		return Bundle, nil
	case image.Chart:
		return Chart, nil
	case image.Catalog:
		return "", errors.New("it is a catalog: want a bundle, a Helm chart or plain manifests")
	}
	if found, err := fs.Stat(fsys, annotations); err == nil && found.Mode().IsRegular() {
		return Bundle, nil
	}
	return Manifests, nil
}

// Renderer renders an image of a format. It ignores the options for other formats.
type Renderer struct {
	Format Format
	Bundle bundle.Options
	Chart  chart.Options
}

var _ source.Renderer = Renderer{}

// Render reads the file system of an image. Errors and warnings name files by their path in
// the image.
func (r Renderer) Render(ctx context.Context, fsys fs.FS) (source.Rendered, error) {
	switch r.Format {
	case Bundle:
		return bundle.Renderer{Options: r.Bundle}.Render(ctx, fsys)
	case Chart:
		archive, err := fs.ReadFile(fsys, image.ChartFile)
		if err != nil {
			return source.Rendered{}, fmt.Errorf("reading the chart: %w", err)
		}
		return chart.Renderer{Options: r.Chart}.RenderArchive(ctx, archive)
	case Manifests:
		return directory.Renderer{}.Render(ctx, fsys)
	}
	return source.Rendered{}, fmt.Errorf("format %q: want %s, %s or %s", r.Format, Bundle, Chart, Manifests)
}
