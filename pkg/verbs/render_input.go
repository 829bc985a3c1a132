package verbs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/bundle"
)

type bundleOptions struct {
	dir                string
	configFile         string
	certificates       string
	acceptRequirements bool
}

func (o *bundleOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "bundle", "", "Registry+v1 bundle, a directory with manifests/ and metadata/ or an image (oci://), instead of plain manifests.")
	flags.StringVar(&o.configFile, "config", "",
		"File with the configuration, YAML or JSON: watchNamespace and deploymentConfig, as a ClusterExtension has them in spec.config.inline (--bundle).")
	flags.StringVar(&o.certificates, "certificates", "",
		"Source of the certificates of webhooks: "+strings.Join(bundle.CertificateProviders(), ", ")+". A bundle with webhooks needs it (--bundle).")
	flags.BoolVar(&o.acceptRequirements, "accept-requirements", false,
		"Render a bundle that requires other packages or kinds, which must be installed already. A warning names them (--bundle).")
}

func bundleFlags() []string {
	return []string{"config", "certificates", "accept-requirements"}
}

// validateInput reads the single input, and refuses flags without an effect.
func (o *renderOptions) validateInput(command *cobra.Command, args []string) error {
	inputs := slices.DeleteFunc(append(slices.Clone(args), o.bundle.dir, o.chart.from), func(one string) bool { return one == "" })
	if len(o.catalog.catalogs) > 0 {
		inputs = append(inputs, o.catalog.catalogs[0])
	}
	if len(inputs) != 1 {
		return fmt.Errorf("%d inputs: want one of DIR, FILE, -, oci://IMAGE, --bundle DIR, --chart DIR|ARCHIVE and --catalog FILE|DIR", len(inputs))
	}
	o.from = inputs[0]
	if o.ofImage() {
		return o.validateImage(command)
	}
	if err := refuseFlags(command, "without --catalog", catalogFlags()); err != nil {
		return err
	}
	if err := refuseFlags(command, "without an image", registryFlagNames()); err != nil {
		return err
	}
	switch {
	case o.bundle.dir != "":
		if err := refuseFlags(command, "with --bundle", releaseFlags(), chartFlags(), []string{"layout"}); err != nil {
			return err
		}
		return o.bundle.validate(o.installNamespace)
	case o.chart.from != "":
		if err := refuseFlags(command, "with --chart", releaseFlags(), bundleFlags(), []string{"layout"}); err != nil {
			return err
		}
		return o.chart.validate(o.installNamespace)
	}
	if err := refuseFlags(command, "without --bundle", bundleFlags()); err != nil {
		return err
	}
	if err := refuseFlags(command, "without --chart", chartFlags()); err != nil {
		return err
	}
	if err := refuseFlags(command, "without --bundle or --chart", []string{installNamespaceFlag}); err != nil {
		return err
	}
	return o.validateLayout(command)
}

// ofImage reports whether an image is rendered: a named image, or a catalog's choice.
func (o *renderOptions) ofImage() bool {
	_, isImage := imageReference(o.from)
	return isImage || len(o.catalog.catalogs) > 0
}

const installNamespaceFlag = "install-namespace"

func refuseFlags(command *cobra.Command, why string, flags ...[]string) error {
	for _, name := range slices.Concat(flags...) {
		if command.Flags().Changed(name) {
			return fmt.Errorf("--%s does nothing %s", name, why)
		}
	}
	return nil
}

func (o *bundleOptions) validate(installNamespace string) error {
	if installNamespace == "" {
		return errors.New("--bundle needs --install-namespace: the namespace that the operator runs in")
	}
	return o.validateCertificates()
}

func (o *bundleOptions) validateCertificates() error {
	if o.certificates == "" || slices.Contains(bundle.CertificateProviders(), o.certificates) {
		return nil
	}
	return fmt.Errorf("--certificates %q: want one of %s", o.certificates, strings.Join(bundle.CertificateProviders(), ", "))
}

type input struct {
	source.Rendered
	annotations map[string]string
	notes       string
}

func readInput(command *cobra.Command, options renderOptions) (in input, err error) {
	switch {
	case options.ofImage():
		return readImage(command, options)
	case options.bundle.dir != "":
		in.Rendered, err = readBundle(command, options.bundle, options.installNamespace)
		in.annotations = map[string]string{v1alpha1.PackageAnnotation: in.Package}
	case options.chart.from != "":
		in.Rendered, err = readChart(command, options)
	default:
		in.Phases, in.notes, err = readLayout(command, options)
		return in, err
	}
	in.notes = namespaceNote(options.installNamespace)
	return in, err
}

func namespaceNote(namespace string) string {
	return fmt.Sprintf("note: the Namespace %s is not among the objects: it has to exist\n", namespace)
}

func readBundle(command *cobra.Command, options bundleOptions, installNamespace string) (source.Rendered, error) {
	made, err := options.options(installNamespace)
	if err != nil {
		return source.Rendered{}, err
	}
	root, err := os.OpenRoot(options.dir)
	if err != nil {
		return source.Rendered{}, err
	}
	defer root.Close()
	rendered, err := bundle.Renderer{Options: made}.Render(command.Context(), root.FS())
	if err != nil {
		return source.Rendered{}, withDirectory(options.dir, err)
	}
	warnOf(command, options.dir, rendered.Warnings)
	return rendered, nil
}

func (o *bundleOptions) options(installNamespace string) (bundle.Options, error) {
	config, err := readConfig(o.configFile)
	return bundle.Options{
		InstallNamespace:   installNamespace,
		Config:             config,
		Certificates:       bundle.CertificateProvider(o.certificates),
		AcceptRequirements: o.acceptRequirements,
	}, err
}

func readConfig(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	content, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("--config %s: %w", name, err)
	}
	if string(content) == "null" {
		return nil, nil
	}
	return content, nil
}

// warnOf prints warnings, with the directory in file names.
func warnOf(command *cobra.Command, dir string, warnings []source.Warning) {
	for _, one := range warnings {
		if one.File != "" {
			one.File = filepath.Join(dir, filepath.FromSlash(one.File))
		}
		fmt.Fprintf(command.ErrOrStderr(), "warning: %s\n", one)
	}
}
