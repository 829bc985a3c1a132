// Package verbs has the commands that both the server's program and the plugin have: rendering,
// adoption from other tools, and removing Penstock from a cluster. The commands for catalogs, which
// only the server's program has, share its flags and files.
package verbs

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock-project/penstock/pkg/client"
)

const extensionFlag = "extension"

// Program is the program that has the commands.
type Program struct {
	// Name is the name that a user types: penstock, or kubectl penstock.
	Name string
	// Cluster is the cluster that commands use.
	Cluster *client.Flags
	// HasClusterFlags is true if all commands of the program have the cluster flags.
	HasClusterFlags bool
}

// addCluster defines the cluster flags, unless all commands of the program have them.
func (p Program) addCluster(flags *pflag.FlagSet) {
	if !p.HasClusterFlags {
		p.Cluster.Add(flags)
	}
}

// examples replaces each % at the start of a command with the name of the program.
func (p Program) examples(lines ...string) string {
	return strings.ReplaceAll("  "+strings.Join(lines, "\n  "), "%", p.Name)
}

// NewAdopt returns the commands that adopt installations of other tools.
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
