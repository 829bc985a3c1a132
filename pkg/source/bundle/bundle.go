// Package bundle renders phased objects from a registry+v1 bundle: a ClusterServiceVersion with its
// CustomResourceDefinitions and further objects.
//
// It reads the layout of a bundle's image: manifests/ with all manifests in one folder, and
// metadata/ with annotations.yaml and, optionally, properties.yaml and dependencies.yaml.
// Deployments, permissions and webhooks of the ClusterServiceVersion become objects with the same
// names as in OLM v1, so that Penstock can adopt an installation. docs/reference/bundles.md lists
// refused content and differences.
//
// It is pure: equal bundles and options render equal bytes, and no object depends on the revision
// number.
package bundle

import (
	"context"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/bundle/config"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// Renderer renders registry+v1 bundles.
type Renderer struct {
	Options Options
}

var _ source.Renderer = Renderer{}

// Options configure the installation of an operator.
type Options struct {
	// InstallNamespace is the namespace of the operator. The bundle does not create it.
	InstallNamespace string
	// Config is the user's configuration, a JSON object in the bundle's schema. Empty
	// configures nothing.
	Config []byte
	// Certificates selects the provider of certificates for webhooks. Empty refuses bundles with
	// webhooks.
	Certificates CertificateProvider
	// KubeVersion is the version of the cluster, such as v1.36.3; empty if unknown.
	KubeVersion string
	// AcceptRequirements renders a bundle that requires other packages, with a warning for each.
	// Without it the bundle is refused.
	AcceptRequirements bool
	// Providers returns the packages that provide a requirement, for error messages; it may be nil.
	Providers func(source.Requirement) []string
}

// Render renders the objects of a bundle. Errors in the bundle are a *directory.Errors; errors in
// the configuration are a *config.Errors.
func (r Renderer) Render(ctx context.Context, fsys fs.FS) (source.Rendered, error) {
	if problems := validation.IsDNS1123Label(r.Options.InstallNamespace); len(problems) > 0 {
		return source.Rendered{}, fmt.Errorf("install namespace %q: %s", r.Options.InstallNamespace, problems[0])
	}
	if err := r.Options.Certificates.validate(); err != nil {
		return source.Rendered{}, err
	}
	contents, err := read(ctx, fsys)
	if err != nil {
		return source.Rendered{}, err
	}
	if err := contents.validate(); err != nil {
		return source.Rendered{}, err
	}
	out := source.Rendered{Package: contents.packageName, Version: contents.csv.Spec.Version, Properties: contents.properties}
	if err := r.checkSupport(contents, &out); err != nil {
		return source.Rendered{}, err
	}
	configured, err := contents.configure(r.Options)
	if err != nil {
		return source.Rendered{}, err
	}
	installation := installation{contents: contents, config: configured, options: r.Options}
	objects, err := installation.objects()
	if err != nil {
		return source.Rendered{}, err
	}
	out.Warnings = append(out.Warnings, contents.warnings...)
	checked, err := directory.Check(objects, directory.Options{Warn: directory.WarnInto(&out)})
	if err != nil {
		return source.Rendered{}, err
	}
	plain := make([]manifest.Object, len(checked))
	for i := range checked {
		plain[i] = checked[i].Object
	}
	out.Phases, err = source.Sort(plain)
	return out, err
}

func (c *contents) configure(options Options) (config.Config, error) {
	modes := c.installModes()
	if !modes.AllNamespaces && !modes.OwnNamespace && !modes.SingleNamespace {
		return config.Config{}, c.refuse(c.csvFile, []any{"spec", "installModes"},
			"spec.installModes: none of AllNamespaces, SingleNamespace and OwnNamespace is supported, and MultiNamespace cannot be installed")
	}
	return config.Parse(options.Config, modes, options.InstallNamespace)
}

// installModes returns the supported install modes. If a mode is listed twice, the last entry
// counts.
func (c *contents) installModes() config.InstallModes {
	var modes config.InstallModes
	for _, mode := range c.csv.Spec.InstallModes {
		switch mode.Type {
		case "AllNamespaces":
			modes.AllNamespaces = mode.Supported
		case "SingleNamespace":
			modes.SingleNamespace = mode.Supported
		case "OwnNamespace":
			modes.OwnNamespace = mode.Supported
		}
	}
	return modes
}
