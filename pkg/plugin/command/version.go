package command

import (
	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func newVersion(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "The version of this plugin",
		Example: "  kubectl penstock version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s.Out.Printf("kubectl-penstock %s\n", s.Version)
			return nil
		},
	}
}
