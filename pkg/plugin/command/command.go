// Package command has the commands of the plugin, one file each. They call the API as the user, and
// print with the neighbouring packages.
package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/plugin/extensions"
	"github.com/penstock-project/penstock/pkg/plugin/fleet"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/plans"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/verbs"
)

// completer begins the name of the program that kubectl runs for completions. The plugin's name
// follows, with underscores.
const completer = "kubectl_complete-"

// Main runs the plugin and returns the exit code.
func Main(ctx context.Context, process session.Process) int {
	s := session.New(process)
	root, err := New(s)
	if err != nil {
		s.Err.Printf("Error: %v\n", err)
		return int(outcome.Unknown)
	}
	args := process.Args
	if strings.HasPrefix(filepath.Base(process.Name), completer) {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	if skew := s.Skew(); skew != "" {
		s.Err.Para(screen.Yellow, screen.Notice, skew)
	}
	if err == nil {
		return int(outcome.OK)
	}
	said := session.Legible(session.Explain(err).Error())
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		// Ending a view is not an error.
		s.Err.Para(screen.Dim, screen.Waiting, "interrupted")
		said = ""
	}
	if said != "" {
		for i, line := range strings.Split(said, "\n") {
			if i == 0 {
				s.Err.Para(screen.Red, "Error:", line)
			} else {
				// The line may be a command to copy. Wrapping would change it.
				s.Err.Printf("%s\n", line)
			}
		}
	}
	return int(outcome.Of(err))
}

// New returns the plugin with all its commands.
func New(s *session.Session) (*cobra.Command, error) {
	root := &cobra.Command{
		Use:   "kubectl-penstock",
		Short: "See, review and roll out what Penstock installs",
		Long: "See what Penstock has installed, read what a change would do before it is made, roll it out, and go back.\n\n" +
			"Exit codes of all commands: 0 yes or done, 1 no (differences, a failed rollout), 2 unknown (usage, rights, no answer),\n" +
			"3 something has changed since it was shown, 124 timeout, 130 interrupted.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl penstock"},
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			if err := s.Begin(); err != nil || command.Name() == extensions.InstallName {
				return err
			}
			return s.Nowhere()
		},
		Version: s.Version,
		// Without Args, cobra suggests commands of similar names.
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetVersionTemplate("kubectl-penstock {{.Version}}\n")
	root.InitDefaultVersionFlag() // before arguments are parsed
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	if err := s.AddFlags(root.PersistentFlags()); err != nil {
		return nil, fmt.Errorf("defining flags: %w", err)
	}
	root.AddGroup(&cobra.Group{ID: reading, Title: "Look:"}, &cobra.Group{ID: changing, Title: "Change:"}, &cobra.Group{ID: helping, Title: "Help yourself:"})
	program := verbs.Program{Name: "kubectl penstock", Cluster: s.Flags(), HasClusterFlags: true}
	for group, commands := range map[string][]*cobra.Command{
		reading:  {newConsole(s), newStatus(s), newDiff(s), newHistory(s), newTree(s), newWhy(s), newReady(s), extensions.NewSearch(s), extensions.NewUpgrades(s), verbs.NewRender(program)},
		changing: {extensions.NewInstall(s), extensions.NewUpgrade(s), extensions.NewUninstall(s), newDeploy(s), newRollback(s), plans.New(s), fleet.New(s), newPause(s), newResume(s), newArchive(s), newFreeze(s), newUnfreeze(s), verbs.NewAdopt(program), verbs.NewUnregister(program)},
		helping:  {newCheck(s), newVersion(s), newVerifyRelease(s), newCompletion(s)},
	} {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	root.SetHelpCommandGroupID(helping)
	return root, nil
}

// Groups of commands in the help.
const (
	reading  = "look"
	changing = "change"
	helping  = "help"
)
