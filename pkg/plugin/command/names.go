package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// extensionNames completes names of extensions, and of their revisions that are not
// archived.
func extensionNames(s *session.Session) cobra.CompletionFunc {
	return s.Complete(func(ctx context.Context, cluster *session.Cluster) ([]string, error) {
		listed, err := cluster.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, unarchived())
		if err != nil {
			return nil, err
		}
		var names []string
		for _, extension := range overview.Of(follow.Pointers(listed.Items)) {
			names = append(names, extension.Name)
			for _, revision := range extension.Revisions {
				names = append(names, revision.Name)
			}
		}
		return names, nil
	})
}
