package main

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

	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/bundle"
)

// bundleOptions are the flags of a registry+v1 bundle.
type bundleOptions struct {
	dir                string
	configFile         string
	certificates       string
	acceptRequirements bool
}

func (o *bundleOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "bundle", "", "Directory of a registry+v1 bundle, with manifests/ and metadata/, instead of plain manifests.")
	flags.StringVar(&o.configFile, "config", "",
		"File with the configuration, YAML or JSON: watchNamespace and deploymentConfig, as a ClusterExtension has them in spec.config.inline (--bundle).")
	flags.StringVar(&o.certificates, "certificates", "",
		"Who makes the certificates of webhooks: "+strings.Join(bundle.CertificateProviders(), ", ")+". A bundle with webhooks needs it (--bundle).")
	flags.BoolVar(&o.acceptRequirements, "accept-requirements", false,
		"Render a bundle that requires other packages or kinds: they are installed already. A warning names them (--bundle).")
}

// bundleFlags are those that do nothing without --bundle.
func bundleFlags() []string {
	return []string{"config", "certificates", "accept-requirements"}
}

// validateInput takes the one input, and refuses flags that would do nothing.
func (o *renderOptions) validateInput(command *cobra.Command, args []string) error {
	inputs := slices.DeleteFunc(append(slices.Clone(args), o.bundle.dir, o.chart.from), func(one string) bool { return one == "" })
	if len(inputs) != 1 {
		return fmt.Errorf("%d inputs: want one of DIR, FILE, -, --bundle DIR and --chart DIR|ARCHIVE", len(inputs))
	}
	o.from = inputs[0]
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

// installNamespaceFlag is of bundles and charts.
const installNamespaceFlag = "install-namespace"

// refuseFlags refuses flags that would do nothing.
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
	if o.certificates == "" || slices.Contains(bundle.CertificateProviders(), o.certificates) {
		return nil
	}
	return fmt.Errorf("--certificates %q: want one of %s", o.certificates, strings.Join(bundle.CertificateProviders(), ", "))
}

// readInput reads what is to be rendered, and says what a person should know of it.
func readInput(command *cobra.Command, options renderOptions) (rendered source.Rendered, notes string, err error) {
	switch {
	case options.bundle.dir != "":
		rendered, err = readBundle(command, options.bundle, options.installNamespace)
	case options.chart.from != "":
		rendered, err = readChart(command, options)
	default:
		rendered.Phases, notes, err = readLayout(command, options)
		return rendered, notes, err
	}
	return rendered, fmt.Sprintf("note: the Namespace %s is not among the objects: it has to exist\n", options.installNamespace), err
}

func readBundle(command *cobra.Command, options bundleOptions, installNamespace string) (source.Rendered, error) {
	config, err := readConfig(options.configFile)
	if err != nil {
		return source.Rendered{}, err
	}
	root, err := os.OpenRoot(options.dir)
	if err != nil {
		return source.Rendered{}, err
	}
	defer root.Close()
	rendered, err := bundle.Renderer{Options: bundle.Options{
		InstallNamespace:   installNamespace,
		Config:             config,
		Certificates:       bundle.CertificateProvider(options.certificates),
		AcceptRequirements: options.acceptRequirements,
	}}.Render(command.Context(), root.FS())
	if err != nil {
		return source.Rendered{}, withDirectory(options.dir, err)
	}
	warnOf(command, options.dir, rendered.Warnings)
	return rendered, nil
}

// readConfig reads YAML or JSON as JSON.
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

// warnOf tells warnings with file names that an editor can open.
func warnOf(command *cobra.Command, dir string, warnings []source.Warning) {
	for _, one := range warnings {
		if one.File != "" {
			one.File = filepath.Join(dir, filepath.FromSlash(one.File))
		}
		fmt.Fprintf(command.ErrOrStderr(), "warning: %s\n", one)
	}
}
