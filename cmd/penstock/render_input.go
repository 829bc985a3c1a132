package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	installNamespace   string
	configFile         string
	certificates       string
	acceptRequirements bool
}

func (o *bundleOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "bundle", "", "Directory of a registry+v1 bundle, with manifests/ and metadata/, instead of plain manifests.")
	flags.StringVar(&o.installNamespace, "install-namespace", "", "Namespace that the operator runs in; it has to exist (--bundle).")
	flags.StringVar(&o.configFile, "config", "",
		"File with the configuration, YAML or JSON: watchNamespace and deploymentConfig, as a ClusterExtension has them in spec.config.inline (--bundle).")
	flags.StringVar(&o.certificates, "certificates", "",
		"Who makes the certificates of webhooks: "+strings.Join(bundle.CertificateProviders(), ", ")+". A bundle with webhooks needs it (--bundle).")
	flags.BoolVar(&o.acceptRequirements, "accept-requirements", false,
		"Render a bundle that requires other packages or kinds: they are installed already. A warning names them (--bundle).")
}

// bundleFlags are those that do nothing without --bundle.
func bundleFlags() []string {
	return []string{"install-namespace", "config", "certificates", "accept-requirements"}
}

// validateInput takes the one input, and refuses flags that would do nothing.
func (o *renderOptions) validateInput(command *cobra.Command, args []string) error {
	inputs := len(args)
	if len(args) == 1 {
		o.from = args[0]
	}
	if o.bundle.dir != "" {
		inputs++
		o.from = o.bundle.dir
	}
	if inputs != 1 {
		return fmt.Errorf("%d inputs: want one of DIR, FILE, - and --bundle DIR", inputs)
	}
	if o.bundle.dir == "" {
		for _, name := range bundleFlags() {
			if command.Flags().Changed(name) {
				return fmt.Errorf("--%s does nothing without --bundle", name)
			}
		}
		return o.validateLayout(command)
	}
	for _, name := range append(releaseFlags(), "layout") {
		if command.Flags().Changed(name) {
			return fmt.Errorf("--%s does nothing with --bundle", name)
		}
	}
	return o.bundle.validate()
}

func (o *bundleOptions) validate() error {
	if o.installNamespace == "" {
		return errors.New("--bundle needs --install-namespace: the namespace that the operator runs in")
	}
	for _, allowed := range append(bundle.CertificateProviders(), "") {
		if o.certificates == allowed {
			return nil
		}
	}
	return fmt.Errorf("--certificates %q: want one of %s", o.certificates, strings.Join(bundle.CertificateProviders(), ", "))
}

// readInput reads what is to be rendered, and says what a person should know of it.
func readInput(command *cobra.Command, options renderOptions) (rendered source.Rendered, notes string, err error) {
	if options.bundle.dir != "" {
		return readBundle(command, options.bundle)
	}
	rendered.Phases, notes, err = readLayout(command, options)
	return rendered, notes, err
}

func readBundle(command *cobra.Command, options bundleOptions) (source.Rendered, string, error) {
	config, err := readConfig(options.configFile)
	if err != nil {
		return source.Rendered{}, "", err
	}
	root, err := os.OpenRoot(options.dir)
	if err != nil {
		return source.Rendered{}, "", err
	}
	defer root.Close()
	rendered, err := bundle.Renderer{Options: bundle.Options{
		InstallNamespace:   options.installNamespace,
		Config:             config,
		Certificates:       bundle.CertificateProvider(options.certificates),
		AcceptRequirements: options.acceptRequirements,
	}}.Render(command.Context(), root.FS())
	if err != nil {
		return source.Rendered{}, "", withDirectory(options.dir, err)
	}
	warnOf(command, options.dir, rendered.Warnings)
	return rendered, fmt.Sprintf("note: the Namespace %s is not among the objects: it has to exist\n", options.installNamespace), nil
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
