package main

import (
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/pkg/server/memory"
	"github.com/penstock-project/penstock/pkg/store/etcdclient"
)

func newServeCommand() *cobra.Command {
	// An error here is a mistake in this source code. The library validates its options later.
	options, err := server.NewOptions()
	settings := &app.Settings{Version: programVersion(), Catalogs: app.NewCatalogs()}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run the API server and the controllers",
		Long: "Serve Penstock's API, keep its store, and roll out revisions.\n\n" +
			"With --register, the host cluster sends requests for the API to this process.\n" +
			"The registration stays when the process ends, so that a restart does not remove the API;\n" +
			"penstock unregister removes it.",
		Example: "  penstock serve --kubeconfig ~/.kube/config --data-dir /var/lib/penstock --register",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err != nil {
				return err
			}
			if err := fillIn(options, settings, command.Flags().Changed, os.Getenv); err != nil {
				return err
			}
			return serve(options, settings)
		},
	}
	if err != nil {
		return command
	}
	sets := options.Flags()
	sets.FlagSet("catalogs").StringSliceVar(&settings.OperatorControllerNamespaces, "operator-controller-namespaces", extension.OperatorControllerNamespaces(),
		"Namespaces where OLM's operator-controller may be installed. While its lease is in one of them, ClusterExtensions are left alone. A lease of the same name elsewhere does not count.")
	sets.FlagSet("rollout").BoolVar(&settings.Preflight, "preflight", true,
		"Try all writes of a phase by dry-run before the first write. Without it, a write is one request instead of two, and a phase stays half written while one of its objects is refused.")
	sets.FlagSet("rollout").BoolVar(&settings.KeepReleases, "keep-helm-releases", false,
		"Keep the Secrets of the Helm releases of ClusterExtensions whose objects Penstock has taken over. Otherwise Penstock deletes them after the first upgrade that has succeeded.")
	settings.Catalogs.AddFlags(sets.FlagSet("catalogs"))
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	const columns = 100
	cliflag.SetUsageAndHelpFunc(command, sets, columns)
	return command
}

func serve(options *server.Options, settings *app.Settings) error {
	encoding.StreamTables()
	etcdclient.LimitLog()
	ctx := genericapiserver.SetupSignalContext()
	ctx = klog.NewContext(ctx, klog.Background())
	role := memory.ServerOnly
	if options.DataDir != "" {
		role = memory.BesideStore
	}
	bound, err := memory.Limit(role)
	if err != nil {
		klog.ErrorS(err, "memory is not limited")
	} else if bound != math.MaxInt64 {
		klog.InfoS("memory is limited", "bytes", bound)
	}
	if os.Getenv("GOGC") == "" {
		app.LimitGarbage(ctx, app.GarbageOfServer)
	}
	options.Version = settings.Version
	if err := settings.Catalogs.Validate(); err != nil {
		return fmt.Errorf("penstock serve: %w", err)
	}
	options.Companions, options.Catalogs = []server.Companion{settings.Catalogs}, settings.Catalogs.Inventory
	settings.ByHelm = func() bool { return !options.Enabled(server.BoxcutterRuntime) }
	options.RenderPackage = settings.RenderPackage
	options.Controllers, options.Profiles = settings.Controllers(), app.Profiles()
	if err := server.Run(ctx, options); err != nil {
		return fmt.Errorf("penstock serve: %w", err)
	}
	return nil
}
