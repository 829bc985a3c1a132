// Package verbs has the commands that the program of the server and the plugin both have: they
// render, adopt what other tools installed, and take Penstock out of a cluster. Those that read
// catalogs, which only the server's program has, share its flags and files.
package verbs

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock-project/penstock/pkg/client"
)

// extensionFlag says of which extension a command speaks.
const extensionFlag = "extension"

// Program is the one that has the commands.
type Program struct {
	// Name is what a user types: penstock, or kubectl penstock.
	Name string
	// Cluster is the one that commands talk to.
	Cluster *client.Flags
	// HasClusterFlags is true when all commands of the program have the flags of the cluster.
	HasClusterFlags bool
}

// addCluster defines the flags of the cluster where the program has none for all commands.
func (p Program) addCluster(flags *pflag.FlagSet) {
	if !p.HasClusterFlags {
		p.Cluster.Add(flags)
	}
}

// examples puts the name of the program in place of each % that begins a command.
func (p Program) examples(lines ...string) string {
	return strings.ReplaceAll("  "+strings.Join(lines, "\n  "), "%", p.Name)
}

// NewAdopt has the commands that take over what other tools have installed.
func NewAdopt(p Program) *cobra.Command {
	command := &cobra.Command{
		Use:     "adopt",
		Short:   "Take over what Helm or OLM installed, without touching what it runs",
		Example: p.examples("% adopt helm shop -n shop --dry-run"),
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newAdoptHelm(p), newAdoptOLMv0(p), newAdoptOLMv1(p))
	return command
}
