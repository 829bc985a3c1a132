// Package bundle makes phased objects from a registry+v1 bundle: a ClusterServiceVersion with its
// CustomResourceDefinitions and further objects.
//
// It reads the layout of a bundle's image: manifests/ with all manifests in one folder, and
// metadata/ with annotations.yaml and, optionally, properties.yaml and dependencies.yaml.
// Deployments, permissions and webhooks of the ClusterServiceVersion become objects with the names
// of OLM v1, so that an installation can be taken over. docs/reference/bundles.md lists refused
// content and differences.
//
// It is pure: equal bundles and options give equal bytes, and no object depends on the number of
// its revision.
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

// Options say where and how an operator is installed.
type Options struct {
	// InstallNamespace is the namespace in which the operator runs. The bundle does not create it.
	InstallNamespace string
	// Config is the user's configuration, one JSON object by the schema of the bundle (see Schema).
	// Empty configures nothing.
	Config []byte
	// Certificates selects the provider of certificates for webhooks. Empty refuses bundles with
	// webhooks.
	Certificates CertificateProvider
	// KubeVersion is the version of the cluster, such as v1.36.3; empty is unknown.
	KubeVersion string
	// AcceptRequirements renders a bundle that requires other packages, with a warning for each.
	// Without it the bundle is refused.
	AcceptRequirements bool
	// Providers returns the packages that provide a requirement, for the error; nil returns none.
	Providers func(source.Requirement) []string
}

// Render makes the objects of a bundle. Errors of the bundle are a
// *directory.Errors; errors of the configuration are a *config.Errors.
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

// configure checks the configuration, and reads it.
func (c *contents) configure(options Options) (config.Config, error) {
	modes := c.installModes()
	if !modes.AllNamespaces && !modes.OwnNamespace && !modes.SingleNamespace {
		return config.Config{}, c.refuse(c.csvFile, []any{"spec", "installModes"},
			"spec.installModes: none of AllNamespaces, SingleNamespace and OwnNamespace is supported, and MultiNamespace cannot be installed")
	}
	return config.Parse(options.Config, modes, options.InstallNamespace)
}

// installModes are those that the ClusterServiceVersion supports. Of a mode that is there
// twice the last one counts.
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
