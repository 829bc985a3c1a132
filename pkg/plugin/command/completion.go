package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func newCompletion(s *session.Session) *cobra.Command {
	command := &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell|install",
		Short: "Complete commands, flags and names in your shell",
		Long: "kubectl completes the arguments of a plugin with a program named kubectl_complete-penstock: install puts a link\n" +
			"with that name beside this program. The other commands print a script for a shell, for users who call kubectl-penstock itself.",
		Example:               "  kubectl penstock completion install\n  kubectl penstock completion bash",
		ValidArgs:             []cobra.Completion{"bash", "zsh", "fish", "powershell", "install"},
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		DisableFlagsInUseLine: true,
		RunE: func(command *cobra.Command, args []string) error {
			root := command.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(s.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(s.Stdout)
			case "fish":
				return root.GenFishCompletion(s.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(s.Stdout)
			default:
				return linkCompleter(s)
			}
		},
	}
	return command
}

// linkCompleter creates a link next to the program, by which kubectl finds the completion.
func linkCompleter(s *session.Session) error {
	program, err := s.Executable()
	if err != nil {
		return fmt.Errorf("looking for this program: %w", err)
	}
	link := filepath.Join(filepath.Dir(program), completer+"penstock")
	err = os.Symlink(filepath.Base(program), link)
	if errors.Is(err, fs.ErrExist) {
		if to, read := os.Readlink(link); read != nil || to != filepath.Base(program) {
			return outcome.Errorf(outcome.Unknown, "%s exists and is not a link to %s: remove it first", link, filepath.Base(program))
		}
		err = nil
	}
	if err != nil {
		return fmt.Errorf("linking %s to %s: %w", link, program, err)
	}
	s.Out.Para(screen.Green, screen.Good, link+" completes kubectl penstock")
	return nil
}
