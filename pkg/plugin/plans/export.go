package plans

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func newPlanExport(s *session.Session) *cobra.Command {
	return planCommand(s, &cobra.Command{
		Use:   "export PLAN",
		Short: "Print the approved manifests, for a Git repository",
		Long: "Print the manifests of a plan that is approved, as YAML. They have only the fields that the plan sets, so they\n" +
			"are for server-side apply. An annotation names the plan and its hash.",
		Example: "  kubectl penstock plan export rebalance",
	}, func(ctx context.Context, p *planReview) error {
		exported, err := p.cluster.HcoV1alpha1().ConfigurationPlans().GetExport(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("exporting plan %s: %w", p.name, err)
		}
		for _, item := range exported.Items {
			document, err := yaml.JSONToYAML(item.Raw)
			if err != nil {
				return fmt.Errorf("writing a manifest of plan %s as YAML: %w", p.name, err)
			}
			if _, err := fmt.Fprintf(p.Stdout, "---\n%s", document); err != nil {
				return fmt.Errorf("writing the manifests of plan %s: %w", p.name, err)
			}
		}
		return nil
	})
}
