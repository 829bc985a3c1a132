// Command penstock is the API server with its controllers, and the tools for it. Each verb has a
// file.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"
	_ "time/tzdata" // windows of plans name time zones, and the image has no time zone files

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/server/memory"
	"github.com/penstock-project/penstock/pkg/sigstore"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
	"github.com/penstock-project/penstock/pkg/verbs"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

func main() {
	app.WithholdBodies()
	if template.IsProcess(os.Args) {
		os.Exit(template.RunProcess(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	if database.IsStoreProcess(os.Args) {
		if _, err := memory.Limit(memory.Store); err != nil {
			fmt.Fprintf(os.Stderr, "memory is not limited: %s\n", err)
		}
		if os.Getenv("GOGC") == "" {
			app.LimitGarbage(context.Background(), app.GarbageOfStore)
		}
		os.Exit(database.RunStoreProcess())
	}
	// Errors are for people, also those of a server that did not start: they are not log lines.
	if err := cli.RunNoErrOutput(newCommand()); err != nil {
		// Errors may quote catalogs, charts and clusters.
		fmt.Fprintln(os.Stderr, screen.SafeLines("Error: "+err.Error()))
		os.Exit(verbs.ExitStatus(err))
	}
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "penstock",
		Short: "Immutable, phased, reviewable revisions for Kubernetes",
		Long: "Penstock turns every change to a cluster into an immutable, phased, reviewable revision.\n" +
			"It is an aggregated API server with its own store, and the controllers that roll revisions out.",
	}
	program := verbs.Program{Name: "penstock", Cluster: &client.Flags{UserAgent: userAgent()}}
	command.AddCommand(newServeCommand(), verbs.NewRender(program), newExportCommand(), newImportCommand(),
		newRestoreCommand(), newMoveCommand(), verbs.NewAdopt(program),
		newFsckCommand(), verbs.NewUnregister(program), newConsoleCommand(), verbs.NewCatalog(program), newTemplateCommand(), newVersionCommand())
	return command
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program, and the day of its trusted root of Sigstore",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			age, old := sigstore.RootAge(time.Now())
			if _, err := fmt.Fprintf(command.OutOrStdout(), "%s\ntrusted root of Sigstore: %s\n", programVersion(), age); err != nil || !old {
				return err
			}
			_, err := fmt.Fprintln(command.ErrOrStderr(), "The trusted root may lack the authorities and logs that sign today: "+sigstore.RenewRoot)
			return err
		},
	}
}

func userAgent() string { return "penstock/" + programVersion() }

// programVersion returns the version that the linker has set, or else the version in Go's build
// information.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return "devel-" + setting.Value[:12]
		}
	}
	return "devel"
}
