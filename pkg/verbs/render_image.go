package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/resolve"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/packed"
)

// wantedImage is an image to render, and the reason for its choice.
type wantedImage struct {
	ref string
	// format is the format that --bundle or --chart require; empty for any.
	format packed.Format
	chosen *resolve.Resolution
	// whole holds the catalogs with all their packages.
	whole []*fbc.Config
}

func (o *renderOptions) validateImage(command *cobra.Command) error {
	why := "with an image"
	if len(o.catalog.catalogs) > 0 {
		why = "with --catalog"
		if err := o.catalog.complete(); err != nil {
			return err
		}
	} else if err := refuseFlags(command, "without --catalog", catalogFlags()); err != nil {
		return err
	}
	if err := refuseFlags(command, why, releaseFlags(), []string{"layout"}); err != nil {
		return err
	}
	return o.bundle.validateCertificates()
}

// wanted returns the named image, or the catalogs' choice.
func (o *renderOptions) wanted(ctx context.Context) (wantedImage, error) {
	if len(o.catalog.catalogs) > 0 {
		return o.choose(ctx)
	}
	ref, _ := imageReference(o.from)
	wanted := wantedImage{ref: ref}
	switch {
	case o.bundle.dir != "":
		wanted.format = packed.Bundle
	case o.chart.from != "":
		wanted.format = packed.Chart
	}
	return wanted, nil
}

func (o *renderOptions) choose(ctx context.Context) (wantedImage, error) {
	o.catalog.images = o.images
	catalogs, whole, err := o.catalog.load(ctx)
	if err != nil {
		return wantedImage{}, err
	}
	chosen, err := resolve.Resolve(o.catalog.request, catalogs)
	if err != nil {
		return wantedImage{}, whyNone(err)
	}
	if chosen.Bundle.Image == "" {
		return wantedImage{}, fmt.Errorf("catalog %s: bundle %s names no image", chosen.Catalog, chosen.Bundle.Name)
	}
	ref, _ := imageReference(chosen.Bundle.Image)
	return wantedImage{ref: ref, chosen: chosen, whole: whole}, nil
}

// readImage chooses an image, pulls it and renders it. It checks that the flags fit the image's
// format, and that the content matches the catalog.
func readImage(command *cobra.Command, options renderOptions) (input, error) {
	wanted, err := options.wanted(command.Context())
	if err != nil {
		return input{}, err
	}
	fetched, err := options.images.fetch(command.Context(), wanted.ref)
	if err != nil {
		return input{}, wanted.told(err)
	}
	defer fetched.Close()
	format, err := packed.FormatOf(fetched.Kind, fetched.FS)
	if err == nil && wanted.format != "" && wanted.format != format {
		err = fmt.Errorf("the image is a %s, want a %s", format, wanted.format)
	}
	if err == nil {
		err = options.fits(command, format)
	}
	if err != nil {
		return input{}, wanted.told(fmt.Errorf("image %s: %w", fetched.Reference, err))
	}
	rendered, err := options.renderImage(command, wanted, fetched, format)
	if err != nil {
		return input{}, wanted.told(fmt.Errorf("image %s:\n%w", fetched.Reference, err))
	}
	return input{Rendered: rendered, annotations: wanted.annotations(rendered, fetched.Reference), notes: wanted.notes(rendered, fetched.Reference, format, options)}, nil
}

// fits refuses flags that have no effect for the image's format.
func (o *renderOptions) fits(command *cobra.Command, format packed.Format) error {
	why := "with " + string(format)
	switch format {
	case packed.Bundle:
		if err := refuseFlags(command, why, chartFlags()); err != nil {
			return err
		}
	case packed.Chart:
		if err := refuseFlags(command, why, bundleFlags()); err != nil {
			return err
		}
	case packed.Manifests:
		return refuseFlags(command, why, chartFlags(), bundleFlags(), []string{installNamespaceFlag})
	}
	if o.installNamespace == "" {
		return fmt.Errorf("a %s needs --install-namespace: the namespace to install it into", format)
	}
	if o.chart.carryOn != "" && len(o.chart.generated) == 0 {
		return errCarryOn()
	}
	return nil
}

func (o *renderOptions) renderImage(command *cobra.Command, wanted wantedImage, fetched *image.Image, format packed.Format) (source.Rendered, error) {
	renderer := packed.Renderer{Format: format}
	var err error
	switch format {
	case packed.Bundle:
		renderer.Bundle, err = o.bundle.options(o.installNamespace)
		renderer.Bundle.Providers = wanted.providers()
	case packed.Chart:
		renderer.Chart, err = o.chartOptions(command)
	}
	if err != nil {
		return source.Rendered{}, err
	}
	rendered, err := renderer.Render(command.Context(), fetched.FS)
	if err == nil {
		err = wanted.check(rendered)
	}
	if err != nil {
		return source.Rendered{}, err
	}
	warnOf(command, "", append(wanted.deprecations(), rendered.Warnings...))
	return rendered, nil
}

func (w wantedImage) check(rendered source.Rendered) error {
	if w.chosen == nil || rendered.Package == "" {
		return nil
	}
	if want := w.chosen.Bundle.Package; rendered.Package != want {
		return fmt.Errorf("it is package %s, and catalog %s says that it is package %s", rendered.Package, w.chosen.Catalog, want)
	}
	if want := w.chosen.Version.String(); rendered.Version != want {
		return fmt.Errorf("it is version %s, and catalog %s says that it is version %s", rendered.Version, w.chosen.Catalog, want)
	}
	return nil
}

// told adds the bundle of the catalog to an error.
func (w wantedImage) told(err error) error {
	if w.chosen == nil {
		return err
	}
	return fmt.Errorf("catalog %s, bundle %s: %w", w.chosen.Catalog, w.chosen.Bundle.Name, err)
}

func (w wantedImage) deprecations() []source.Warning {
	if w.chosen == nil {
		return nil
	}
	var out []source.Warning
	said := w.chosen.Deprecation
	all := []*fbc.Deprecation{said.Package, said.Bundle}
	for i := range said.Channels {
		all = append(all, &said.Channels[i])
	}
	for _, one := range all {
		if one != nil {
			out = append(out, source.Warning{Message: "deprecated: " + one.Message})
		}
	}
	return out
}

func (w wantedImage) annotations(rendered source.Rendered, reference string) map[string]string {
	out := map[string]string{v1alpha1.ReferenceAnnotation: reference}
	if rendered.Package != "" {
		out[v1alpha1.PackageAnnotation] = rendered.Package
	}
	if w.chosen != nil {
		out[v1alpha1.BundleAnnotation] = w.chosen.Bundle.Name
	}
	return out
}

// notes returns notes for people about the rendered content and its choice.
func (w wantedImage) notes(rendered source.Rendered, reference string, format packed.Format, options renderOptions) string {
	var b strings.Builder
	if w.chosen != nil {
		fmt.Fprintf(&b, "note: bundle %s of catalog %s: %s\n", w.chosen.Bundle.Name, w.chosen.Catalog, w.chosen.Reason)
	}
	what := strings.TrimSpace(rendered.Package + " " + rendered.Version)
	if what != "" {
		what = ": package " + what
	}
	fmt.Fprintf(&b, "note: %s of image %s%s\n", format, reference, what)
	if format != packed.Manifests {
		b.WriteString(namespaceNote(options.installNamespace))
	}
	return b.String()
}

// providers returns a function that finds the packages with a bundle's requirement; nil without
// catalogs.
func (w wantedImage) providers() func(source.Requirement) []string {
	if w.chosen == nil {
		return nil
	}
	return func(required source.Requirement) []string {
		var names []string
		for _, catalog := range w.whole {
			for i := range catalog.Bundles {
				if one := &catalog.Bundles[i]; required.MetBy(one.Package, propertiesOf(one)) {
					names = append(names, one.Package)
				}
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
}

func propertiesOf(of *fbc.Bundle) []source.Property {
	out := make([]source.Property, len(of.Properties))
	for i, one := range of.Properties {
		out[i] = source.Property(one)
	}
	return out
}

func errCarryOn() error { return errors.New("--carry-on does nothing without --generated-secret") }
