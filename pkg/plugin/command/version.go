package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

type versions struct {
	Client string `json:"client"`
	Server string `json:"server,omitempty"`
}

func newVersion(s *session.Session) *cobra.Command {
	var output session.Format
	onlyClient := false
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this plugin and of the Penstock server",
		Long:  "Print both versions. Exit code: 1 when their minors differ, 2 when the server does not report one.",
		Example: "  kubectl penstock version\n" +
			"  kubectl penstock version --client -o json",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			found := versions{Client: s.Version}
			// Without a cluster, the plugin's own version is still useful.
			var unanswered error
			if !onlyClient {
				found.Server, unanswered = serverVersion(command.Context(), s)
			}
			switch output {
			case "":
				s.Out.Printf("kubectl-penstock %s\n", found.Client)
				if found.Server != "" {
					s.Out.Printf("penstock         %s\n", found.Server)
				}
			case session.Name:
				s.Out.Printf("%s\n", found.Client)
			default:
				if err := s.PrintValue(output, found); err != nil {
					return err
				}
			}
			switch {
			case onlyClient:
				return nil
			case unanswered != nil:
				return unanswered
			case found.Server == "":
				return outcome.Errorf(outcome.Unknown, "the version of the Penstock server is unknown: the server is too old to report it, or something else answers")
			case s.Skew() != "":
				return outcome.Quiet(outcome.No)
			default:
				return nil
			}
		},
	}
	command.Flags().BoolVar(&onlyClient, "client", false, "Only the version of this plugin; the cluster is not asked.")
	output.Add(command.Flags())
	return command
}

// serverVersion requests the version of the Penstock that answers. It is empty if that Penstock is
// too old to report it.
func serverVersion(ctx context.Context, s *session.Session) (string, error) {
	cluster, err := s.Connect()
	if err != nil {
		return "", err
	}
	// Every answer has the header, including refusals.
	_, err = client.Raw(cluster.REST.Get().AbsPath("/apis/" + v1alpha1.SchemeGroupVersion.String()).Do(ctx))
	if version := s.Server.Get(); version != "" {
		return version, nil
	}
	return "", err
}
