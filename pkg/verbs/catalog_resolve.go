package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/resolve"
)

type catalogResolveOptions struct {
	catalogs   []string
	priorities []string
	request    resolve.Request
	installed  string
	output     string
	// kubeVersion is the version of the cluster; empty means unknown.
	kubeVersion string
	images      registryFlags
}

func newCatalogResolve(p Program) *cobra.Command {
	var options catalogResolveOptions
	command := &cobra.Command{
		Use:   "resolve --catalog [NAME=]FILE|DIR|oci://IMAGE --package NAME",
		Short: "Say which bundle an extension would get, and why",
		Long: "Choose the bundle of a package as the controller would, by the rules of OLM v1.\n\n" +
			"With -o json it prints {\"bundle\", \"version\", \"channel\", \"reason\"}. When there is no bundle, only reason is set,\n" +
			"and the exit status is 1.",
		Example: p.examples(
			"% catalog resolve --catalog ./catalog --package argocd-operator --version '>=0.14 <0.16'",
			"% catalog resolve --catalog ./catalog --package argocd-operator --version 0.16.0 --installed argocd-operator.v0.14.0=0.14.0",
		),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return catalogResolve(command, options) },
	}
	options.add(command.Flags())
	options.images.add(command.Flags())
	command.Flags().StringVar(&options.kubeVersion, "kube-version", "", "Version of Kubernetes that the cluster has; bundles that need a newer one are not chosen. Default: all bundles.")
	command.Flags().StringVarP(&options.output, "output", "o", "text", "Format: text or json.")
	return command
}

func (o *catalogResolveOptions) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.catalogs, catalogFlag, nil, "File, directory or image (oci://) of a catalog; NAME=FILE gives it another name. May be given several times.")
	flags.StringArrayVar(&o.priorities, "priority", nil, "Priority of a catalog, NAME=NUMBER; the highest wins. Default: 0.")
	flags.StringVar(&o.request.Package, "package", "", "Name of the package.")
	flags.StringVar(&o.request.Version, "version", "", "Range of versions, for instance 1.2.x or '>=1.2 <2'. Default: any version.")
	flags.StringArrayVar(&o.request.Channels, "channel", nil, "Channel to search; may be given several times. Default: all channels.")
	flags.StringVar(&o.installed, "installed", "", "Installed bundle, BUNDLE=VERSION: only its successors are allowed.")
	flags.BoolVar(&o.request.SelfCertified, "self-certified", false, "Allow every version, also if it is no successor, as upgradeConstraintPolicy SelfCertified does.")
}

const catalogFlag = "catalog"

func catalogFlags() []string {
	return []string{"priority", "package", "version", "channel", "installed", "self-certified"}
}

type resolved struct {
	Bundle  string `json:"bundle"`
	Version string `json:"version"`
	Channel string `json:"channel"`
	Reason  string `json:"reason"`
}

func catalogResolve(command *cobra.Command, options catalogResolveOptions) error {
	if err := CheckOutput(options.output); err != nil {
		return Unusable(err)
	}
	if err := options.complete(); err != nil {
		return Unusable(err)
	}
	catalogs, _, err := options.load(command.Context())
	if err != nil {
		return err
	}
	resolution, err := resolve.Resolve(options.request, catalogs)
	if err != nil {
		return noBundle(command.OutOrStdout(), options.output, err)
	}
	answer := resolved{Bundle: resolution.Bundle.Name, Version: resolution.Version.String(), Channel: resolution.Channel, Reason: resolution.Reason}
	if options.output == "json" {
		return printJSON(command.OutOrStdout(), answer)
	}
	return printText(command.OutOrStdout(), fmt.Sprintf("%s %s from catalog %s\n%s\n", answer.Bundle, answer.Version, resolution.Catalog, answer.Reason))
}

// noBundle prints the answer no, which is not a failure.
func noBundle(to io.Writer, format string, err error) error {
	reason := whyNone(err)
	if format == "json" {
		if err := printJSON(to, resolved{Reason: reason.Error()}); err != nil {
			return err
		}
	}
	return &exitError{reason, 1}
}

// whyNone adds the resolver's reason to its error.
func whyNone(err error) error {
	var none *resolve.Error
	if errors.As(err, &none) && none.Reason != "" {
		return fmt.Errorf("%w: %s", err, none.Reason)
	}
	return err
}

func (o *catalogResolveOptions) complete() error {
	if len(o.catalogs) == 0 {
		return errors.New("--catalog is required: name a file, a directory or an image")
	}
	if o.request.Package == "" {
		return errors.New("--package is required")
	}
	if o.installed != "" {
		// Names of bundles contain no =, nor do versions.
		bundle, version, found := strings.Cut(o.installed, "=")
		if !found || bundle == "" || version == "" {
			return fmt.Errorf("--installed %q: want BUNDLE=VERSION, for instance argocd-operator.v0.14.0=0.14.0", o.installed)
		}
		o.request.Installed = &resolve.Installed{Name: bundle, Version: version}
	}
	if o.kubeVersion != "" {
		cluster, err := clusterversion.ParseKubernetes(o.kubeVersion)
		if err != nil {
			return fmt.Errorf("--kube-version: %w", err)
		}
		o.request.Cluster = &cluster
	}
	return nil
}

// load reads the catalogs. It returns the package's part of each by its name, and the whole
// catalogs.
func (o *catalogResolveOptions) load(ctx context.Context) ([]resolve.Catalog, []*fbc.Config, error) {
	priorities, err := o.priorityOf()
	if err != nil {
		return nil, nil, Unusable(err)
	}
	seen := map[string]bool{}
	var out []resolve.Catalog
	var whole []*fbc.Config
	for _, given := range o.catalogs {
		name, path := catalogName(given)
		if seen[name] {
			return nil, nil, Unusable(fmt.Errorf("--catalog %s: there are two catalogs named %s: write NAME=%s", given, name, path))
		}
		seen[name] = true
		config, err := loadCatalogs(ctx, &o.images, []string{path})
		if err != nil {
			return nil, nil, err
		}
		whole = append(whole, config)
		out = append(out, resolve.Catalog{Name: name, Priority: priorities[name], Config: config.Package(o.request.Package)})
		delete(priorities, name)
	}
	for name := range priorities {
		return nil, nil, Unusable(fmt.Errorf("--priority %s: there is no catalog of that name", name))
	}
	return out, whole, nil
}

// catalogName splits NAME=PATH. Without a name, the catalog's name is the last part of its path,
// without tag and digest for an image.
func catalogName(given string) (name, path string) {
	if name, path, found := strings.Cut(given, "="); found {
		return name, path
	}
	if ref, isImage := imageReference(given); isImage {
		ref, _, _ = strings.Cut(ref, "@")
		ref = ref[strings.LastIndex(ref, "/")+1:]
		name, _, _ = strings.Cut(ref, ":")
		return name, given
	}
	return filepath.Base(given), given
}

func (o *catalogResolveOptions) priorityOf() (map[string]int32, error) {
	out := map[string]int32{}
	for _, given := range o.priorities {
		name, text, found := strings.Cut(given, "=")
		number, err := strconv.ParseInt(text, 10, 32)
		if !found || err != nil {
			return nil, fmt.Errorf("--priority %q: want NAME=NUMBER", given)
		}
		out[name] = int32(number)
	}
	return out, nil
}

func printJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
