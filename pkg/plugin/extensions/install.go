package extensions

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/install"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// InstallName is the name of the only command with --namespace.
const InstallName = "install"

type installOptions struct {
	version, catalog, approval, account string
	watch, config                       string
	channels                            []string
	yes, dryRun, accept                 bool
	timeout                             time.Duration
	output                              session.Format
}

// NewInstall returns the command that creates a ClusterExtension.
func NewInstall(s *session.Session) *cobra.Command {
	var options installOptions
	command := &cobra.Command{
		Use:   InstallName + " PACKAGE [NAME] -n NAMESPACE",
		Short: "Install a package of a catalog",
		Long: "Show a ClusterExtension, write it in your name, and follow its installation. Penstock then creates a revision of the\n" +
			"package in your name: it does nothing that you have no right to do. When you lack rights, it says which, and continues\n" +
			"once you have them. With --approval Manual the revision waits, and so does each upgrade: you see the diff, and\n" +
			"are asked. With Reviewed, the default, an upgrade waits only when its diff has a note that deserves a look.\n\n" +
			"Later versions are installed automatically in the name of --service-account, which you must be allowed to impersonate;\n" +
			"without one, each waits for an approval: kubectl penstock upgrade.",
		Example: "  kubectl penstock install lighthouse -n harbour --dry-run\n" +
			"  kubectl penstock install lighthouse -n harbour --version 1.0.x --channel stable --approval Manual",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			i := &installation{Session: s, installOptions: options, pkg: args[0], name: args[len(args)-1]}
			i.anyChannel = command.Flags().Changed("channel")
			return i.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.version, "version", "", "Range of versions, such as 1.4.2 or >=1.4 <2. Default: the highest version of the channels.")
	flags.StringSliceVar(&options.channels, "channel", nil, "Channels to take versions from; an empty value means every channel. Default: the default channel of the package.")
	flags.StringVar(&options.catalog, "catalog", "", "Only this ClusterCatalog.")
	flags.StringVar(&options.approval, "approval", extension.ApprovalReviewed, "Manual: each version waits for an approval. Reviewed: an upgrade waits when its diff has notes that hold it. Automatic: none waits.")
	flags.StringVar(&options.account, "service-account", "", "ServiceAccount in the namespace that is the author of later versions.")
	flags.StringVar(&options.watch, "watch-namespace", "", "Namespace that the operator watches, for a bundle that cannot watch all.")
	flags.StringVar(&options.config, "config", "", "File with the configuration of the bundle, YAML or JSON, as in spec.config.inline; - is stdin.")
	flags.BoolVar(&options.accept, "accept-requirements", false, "Install a bundle that requires other packages or kinds, which must be there.")
	flags.BoolVar(&options.yes, "yes", false, "Do not ask. With --approval Manual the first version still waits.")
	flags.BoolVar(&options.dryRun, "dry-run", false, "Only show what would be written, after the checks of the cluster.")
	flags.DurationVar(&options.timeout, "timeout", review.Patience, "Stop following after this time, with exit code 124; the installation continues. 0 is no limit.")
	options.output.Add(flags)
	return command
}

type installation struct {
	*session.Session
	installOptions
	pkg, name string
	// anyChannel is true if --channel was given, so that the default channel does not apply.
	anyChannel bool
	configured map[string]any
	cluster    *session.Cluster
}

func (i *installation) readConfig() error {
	if i.config == "" {
		return nil
	}
	read := func() ([]byte, error) { return os.ReadFile(i.config) }
	if i.config == "-" {
		read = func() ([]byte, error) { return io.ReadAll(i.Stdin) }
	}
	content, err := read()
	if err != nil {
		return outcome.Errorf(outcome.Unknown, "--config: %w", err)
	}
	if err := yaml.UnmarshalStrict(content, &i.configured); err != nil {
		return outcome.Errorf(outcome.Unknown, "--config %s: want one object, in YAML or JSON: %w", i.config, err)
	}
	return nil
}

func (i *installation) check() error {
	switch {
	case i.Namespace() == "":
		return outcome.Errorf(outcome.Unknown, "-n is required: the namespace to install the package into, which must exist")
	case !slices.Contains([]string{extension.ApprovalAutomatic, extension.ApprovalReviewed, extension.ApprovalManual}, i.approval):
		return outcome.Errorf(outcome.Unknown, "--approval %q: want %s, %s or %s", i.approval, extension.ApprovalAutomatic, extension.ApprovalReviewed, extension.ApprovalManual)
	}
	if err := i.readConfig(); err != nil {
		return err
	}
	if err := i.request().Check(); err != nil {
		return outcome.Errorf(outcome.Unknown, "%w", err)
	}
	if !i.yes && !i.dryRun && !i.Person() {
		return outcome.Errorf(outcome.Unknown, "there is no terminal to ask on: --yes installs without asking, --dry-run only shows what would be written")
	}
	return nil
}

// run shows the object, creates it when the user agrees, and follows it.
func (i *installation) run(ctx context.Context) error {
	err := i.check()
	if err != nil {
		return err
	}
	if i.cluster, err = i.Connect(); err != nil {
		return err
	}
	// 1. Read the package.
	offered, err := i.offered(ctx)
	if err != nil {
		return err
	}
	// 2. Let the cluster check the object. Nothing is stored for that.
	written, err := i.request().Object()
	if err != nil {
		return err
	}
	extensions := i.cluster.Host.Resource(extension.Resource)
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if _, err := extensions.Create(ctx, written, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}); err != nil {
		return i.refused(err)
	}
	if err := i.show(offered, written); err != nil {
		return err
	}
	if offered != nil {
		if lacks := i.request().Lacks(offered, i.request().LeadsTo(offered)); lacks != "" {
			return outcome.Errorf(outcome.No, "nothing was written: %s", lacks)
		}
	}
	if i.dryRun {
		return nil
	}
	if !i.yes {
		agreed, err := i.Confirm(ctx, fmt.Sprintf("Install %s as %s into namespace %s?", i.pkg, i.name, i.Namespace()))
		if err != nil || !agreed {
			i.Err.Para(screen.Dim, screen.Waiting, "nothing was written")
			if err == nil {
				err = outcome.Quiet(outcome.No)
			}
			return err
		}
	}
	// 3. Create it, and follow it.
	if _, err := extensions.Create(ctx, written, options); err != nil {
		return i.refused(err)
	}
	return (&upgrading{Session: i.Session, cluster: i.cluster, name: i.name, yes: false, unasked: i.yes, timeout: i.timeout, output: i.output}).follow(ctx)
}

func (i *installation) refused(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return outcome.Errorf(outcome.Conflict, "there is a ClusterExtension %s already: kubectl penstock upgrade %s changes its version, and another NAME after the package installs the package a second time", i.name, i.name)
	}
	return fmt.Errorf("creating ClusterExtension %s: %w", i.name, session.Uninstalled(err))
}

// offered returns the package; nil for users who cannot read packages.
func (i *installation) offered(ctx context.Context) (*catalogv1alpha1.CatalogPackage, error) {
	found, err := i.cluster.CatalogV1alpha1().CatalogPackages().Get(ctx, i.pkg, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		i.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("what the catalogs have is not shown: %v", err))
		return nil, nil
	case session.NotFound(err):
		return nil, outcome.Errorf(outcome.No, "%w; kubectl penstock search lists all packages", err)
	case err != nil:
		return nil, fmt.Errorf("reading package %s: %w", i.pkg, session.Uninstalled(err))
	}
	for _, wanted := range i.channels {
		var there []string
		for _, channel := range found.Channels {
			there = append(there, channel.Name)
		}
		if i.catalog == "" && len(there) > 0 && !slices.Contains(there, wanted) && len(found.Catalogs) == 1 {
			return nil, outcome.Errorf(outcome.No, "package %s has no channel %q; it has %s", i.pkg, wanted, session.Enumerate(there))
		}
	}
	return found, i.choose(found)
}

// choose takes the default channel unless the user named a channel.
func (i *installation) choose(offered *catalogv1alpha1.CatalogPackage) error {
	if i.catalog != "" && i.catalog != offered.Catalog {
		return nil // the default channel of that catalog is unknown
	}
	if channel := install.DefaultChannel(offered); channel != "" && !i.anyChannel {
		i.channels = []string{channel}
	}
	if outside := i.request().OutsideChannels(offered, i.version); outside != "" {
		return outcome.Errorf(outcome.No, "%s: name a channel with --channel", outside)
	}
	return nil
}

func (i *installation) request() install.Request {
	return install.Request{
		Package: i.pkg, Name: i.name, Namespace: i.Namespace(), Version: i.version, Channels: i.channels, Catalog: i.catalog,
		Approval: i.approval, ServiceAccount: i.account,
		WatchNamespace: i.watch, Config: i.configured, AcceptRequirements: i.accept,
	}
}

func (i *installation) show(offered *catalogv1alpha1.CatalogPackage, written any) error {
	if i.output != "" && i.dryRun {
		return i.PrintValue(i.output, written)
	}
	on := i.Out
	if i.output != "" {
		on = i.Err
	}
	if offered != nil {
		latest, elsewhere := install.Latest(offered)
		said := fmt.Sprintf("%s of catalog %s: the latest version is %s", offered.Name, offered.Catalog, latest)
		if elsewhere != "" {
			said += " in the default channel " + offered.DefaultChannel + ", and " + elsewhere
		}
		for _, channel := range offered.Channels {
			if slices.Contains(i.channels, channel.Name) {
				said += fmt.Sprintf(", in channel %s %s", channel.Name, channel.Latest)
				if channel.Name == offered.DefaultChannel && !i.anyChannel {
					said += " (the default channel)"
				}
			}
		}
		on.Para(screen.Bold, "", said)
		if kinds := install.Kinds(offered); len(kinds) > 0 {
			on.Para(screen.Plain, "", "it brings "+session.Enumerate(kinds))
		}
		for _, installed := range offered.Installed {
			on.Para(screen.Yellow, screen.Notice, install.InstalledAlready(installed, i.name))
		}
	}
	lines, err := yamlLines(written)
	if err != nil {
		return err
	}
	for _, line := range lines {
		on.Printf("  %s\n", line)
	}
	return nil
}
