package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func newPlan(s *session.Session) *cobra.Command {
	command := &cobra.Command{
		Use:     "plan",
		Short:   "Review, approve, run and undo changes to objects of others",
		Long:    "A ConfigurationPlan changes objects that other operators own. It is computed, shown, approved and executed, in this order.",
		Example: "  kubectl penstock plan list",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newPlanList(s), newPlanShow(s), newPlanApprove(s), newPlanReject(s), newPlanRun(s), newPlanStop(s), newPlanUndo(s), newPlanHistory(s))
	return command
}

func newPlanList(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:     "list",
		Short:   "All plans, those first that need somebody",
		Example: "  kubectl penstock plan list",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			plans, err := cluster.HcoV1alpha1().ConfigurationPlans().List(command.Context(), metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("listing plans: %w", err)
			}
			if output != "" {
				var objects []runtime.Object
				for i := range plans.Items {
					objects = append(objects, &plans.Items[i])
				}
				return s.PrintObjects(output, objects)
			}
			if len(plans.Items) == 0 {
				s.Out.Printf("There are no plans. kubectl get configurationprofiles lists what one can be made of.\n")
				return nil
			}
			s.Out.Lines(plansInNeed(plans.Items))
			s.Out.Table(planTable(plans.Items))
			return nil
		},
	}
	output.Add(command.Flags())
	return command
}

func newPlanShow(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:               "show PLAN",
		Short:             "What a plan disturbs, takes and changes",
		Example:           "  kubectl penstock plan show rebalance",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: planNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			p := &planReview{Session: s, cluster: cluster, name: args[0]}
			if output != "" {
				plan, err := p.read(command.Context())
				if err != nil {
					return err
				}
				return s.PrintObject(output, plan)
			}
			_, err = p.show(command.Context())
			return err
		},
	}
	output.Add(command.Flags())
	return command
}

func newPlanHistory(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:               "history PLAN",
		Short:             "The runs of a plan: who approved them, when, and what became of them",
		Example:           "  kubectl penstock plan history rebalance",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: planNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			history, err := cluster.HcoV1alpha1().ConfigurationPlans().GetHistory(command.Context(), args[0], metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("reading the history of plan %s: %w", args[0], err)
			}
			if output != "" {
				return s.PrintObject(output, history)
			}
			out := screen.Table{Header: []string{"RUN", "OUTCOME", "STARTED", "ENDED", "APPROVED BY", "COMMENT"}}
			for i := range history.Runs {
				run := &history.Runs[i]
				out.Add(fmt.Sprint(run.Run), string(run.Outcome), at(&run.StartedAt), at(run.EndedAt), run.Approval.Username, run.Approval.Comment)
			}
			s.Out.Table(out)
			return nil
		},
	}
	output.Add(command.Flags())
	return command
}

func at(time *metav1.Time) string {
	if time == nil || time.IsZero() {
		return ""
	}
	return time.UTC().Format("2006-01-02T15:04:05Z")
}

// planReview is what is done with one plan.
type planReview struct {
	*session.Session
	cluster *session.Cluster
	name    string
}

func (p *planReview) read(ctx context.Context) (*v1alpha1.ConfigurationPlan, error) {
	plan, err := p.cluster.HcoV1alpha1().ConfigurationPlans().Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading plan %s: %w", p.name, err)
	}
	return plan, nil
}

// show prints a plan with what it would change now, and returns it. Both are of the same
// hash, or the plan is read again.
func (p *planReview) show(ctx context.Context) (*v1alpha1.ConfigurationPlan, error) {
	for {
		plan, err := p.read(ctx)
		if err != nil {
			return nil, err
		}
		if plan.Status.PlanHash == "" {
			changes.PrintPlan(p.Out, plan, nil)
			return plan, nil
		}
		diff, err := p.cluster.HcoV1alpha1().ConfigurationPlans().GetDiff(ctx, p.name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			p.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("what it would change now is not shown, only what it changed when it was computed: %v", err))
			diff = nil
		case err != nil:
			return nil, fmt.Errorf("asking what plan %s would change: %w", p.name, err)
		case diff.PlanHash != plan.Status.PlanHash:
			continue // it was computed anew in between
		}
		changes.PrintPlan(p.Out, plan, diff)
		return plan, nil
	}
}

// source follows the plan.
func (p *planReview) source() follow.Source[*v1alpha1.ConfigurationPlan] {
	api := p.cluster.HcoV1alpha1().ConfigurationPlans()
	return follow.Source[*v1alpha1.ConfigurationPlan]{
		Options: metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, p.name).String()},
		List: func(ctx context.Context, options metav1.ListOptions) ([]*v1alpha1.ConfigurationPlan, string, error) {
			listed, err := api.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return session.Pointers(listed.Items), listed.ResourceVersion, nil
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, options)
		},
	}
}
