package verbs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

type catalogGraphOptions struct {
	name      string
	channels  []string
	installed string
	to        string
	output    string
	images    registryFlags
}

func newCatalogGraph(p Program) *cobra.Command {
	var options catalogGraphOptions
	command := &cobra.Command{
		Use:   "graph FILE|DIR|oci://IMAGE... --package NAME",
		Short: "Print the upgrade graph of a package",
		Long: "Print the channels of a package with their bundles, the highest first, and what each bundle upgrades.\n\n" +
			"With --installed and --to it also prints the shortest upgrade path; the exit status is 1 when there is none.",
		Example: p.examples(
			"% catalog graph ./catalog --package argocd-operator --installed argocd-operator.v0.14.0=0.14.0 --to 0.17.0",
		),
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return catalogGraph(command, args, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.name, "package", "", "Name of the package.")
	flags.StringArrayVar(&options.channels, "channel", nil, "Channel to print; may be given several times. Default: all channels.")
	flags.StringVar(&options.installed, "installed", "", "Installed bundle, BUNDLE=VERSION: it is marked, and the path begins there.")
	flags.StringVar(&options.to, "to", "", "Version or bundle to which the path leads.")
	options.images.add(flags)
	flags.StringVarP(&options.output, "output", "o", "text", "Format: text or json.")
	return command
}

func catalogGraph(command *cobra.Command, args []string, options catalogGraphOptions) error {
	if err := CheckOutput(options.output); err != nil {
		return err
	}
	if options.name == "" {
		return Unusable(errors.New("--package is required"))
	}
	if (options.to == "") != (options.installed == "") && options.to != "" {
		return Unusable(errors.New("--to needs --installed: the bundle where the path begins"))
	}
	catalog, err := loadCatalogs(command.Context(), &options.images, args)
	if err != nil {
		return err
	}
	own, err := packageOf(catalog, options.name)
	if err != nil {
		return err
	}
	drawn := graph.New(own, options.channels)
	from, err := options.from()
	if err != nil {
		return Unusable(err)
	}
	if options.to == "" {
		return options.print(command, drawn, from, nil)
	}
	to, err := bundleNamed(drawn, options.to)
	if err != nil {
		return Unusable(err)
	}
	path := drawn.Path(from, to)
	if path == nil {
		path = []graph.Upgrade{}
	}
	if err := options.print(command, drawn, from, path); err != nil || len(path) > 0 || to == from.Name {
		return err
	}
	return &exitError{fmt.Errorf("no upgrade path leads from %s to %s", from.Name, to), 1}
}

func (o *catalogGraphOptions) from() (graph.Installed, error) {
	if o.installed == "" {
		return graph.Installed{}, nil
	}
	bundle, text, _ := strings.Cut(o.installed, "=")
	version, err := fbc.ParseVersion(text)
	if err != nil {
		return graph.Installed{}, fmt.Errorf("--installed %q: want BUNDLE=VERSION: %w", o.installed, err)
	}
	return graph.Installed{Name: bundle, Version: version}, nil
}

func bundleNamed(drawn *graph.Graph, wanted string) (string, error) {
	if drawn.Node(wanted) != nil {
		return wanted, nil
	}
	for _, node := range drawn.Nodes() {
		if node.Readable && node.Version.String() == wanted {
			return node.Bundle.Name, nil
		}
	}
	return "", fmt.Errorf("--to %q: the package has no such version or bundle", wanted)
}

func (o *catalogGraphOptions) print(command *cobra.Command, drawn *graph.Graph, from graph.Installed, path []graph.Upgrade) error {
	to := command.OutOrStdout()
	if o.output == "json" {
		drawing := drawn.Draw()
		if path != nil {
			bundles := make([]string, len(path))
			for i, step := range path {
				bundles[i] = step.Bundle
			}
			drawing.Path = &bundles
		}
		return printJSON(to, drawing)
	}
	var said strings.Builder
	if err := drawn.Text(&said, from.Name); err != nil {
		return err
	}
	if len(path) > 0 {
		fmt.Fprintf(&said, "\nfrom %s: %s\n", drawn.ShortName(from.Name), drawn.PathText(path))
	}
	return printText(to, said.String())
}
