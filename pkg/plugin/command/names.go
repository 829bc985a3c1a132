package command

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// extensionNames completes names of extensions, and of their revisions that are not
// archived.
func extensionNames(s *session.Session) cobra.CompletionFunc {
	return completions(s, func(ctx context.Context, cluster *session.Cluster) ([]string, error) {
		listed, err := cluster.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, unarchived())
		if err != nil {
			return nil, err
		}
		var names []string
		for _, extension := range overview.Of(session.Pointers(listed.Items)) {
			names = append(names, extension.Name)
			for _, revision := range extension.Revisions {
				names = append(names, revision.Name)
			}
		}
		return names, nil
	})
}

// planNames completes names of plans.
func planNames(s *session.Session) cobra.CompletionFunc {
	return completions(s, func(ctx context.Context, cluster *session.Cluster) ([]string, error) {
		listed, err := cluster.HcoV1alpha1().ConfigurationPlans().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range listed.Items {
			names = append(names, listed.Items[i].Name)
		}
		return names, nil
	})
}

// completions completes the first argument.
func completions(s *session.Session, names func(context.Context, *session.Cluster) ([]string, error)) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Suggest(command.Context(), names), cobra.ShellCompDirectiveNoFileComp
	}
}
