// Package plans has the commands for ConfigurationPlans. They show a plan, and execute what the
// user confirms.
package plans

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// New returns the command plan with its subcommands.
func New(s *session.Session) *cobra.Command {
	command := &cobra.Command{
		Use:     "plan",
		Short:   "Review, approve, run and undo changes to objects of other operators",
		Long:    "A ConfigurationPlan changes objects that other operators own. It is computed, shown, approved and executed, in this order.",
		Example: "  kubectl penstock plan list",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newPlanList(s), newPlanShow(s), newPlanApprove(s), newPlanReject(s), newPlanRun(s), newPlanStop(s), newPlanUndo(s), newPlanHistory(s), newPlanExport(s))
	return command
}

func newPlanList(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:     "list",
		Short:   "List all plans, those that need a person first",
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
				s.Out.Printf("There are no plans. kubectl get configurationprofiles lists the profiles that a plan can apply.\n")
				return nil
			}
			s.Out.Lines(InNeed(plans.Items))
			s.Out.Table(Table(plans.Items))
			return nil
		},
	}
	output.Add(command.Flags())
	return command
}

func newPlanShow(s *session.Session) *cobra.Command {
	var output session.Format
	command := planCommand(s, &cobra.Command{
		Use:     "show PLAN",
		Short:   "Show what a plan disturbs, takes from other field managers and changes",
		Example: "  kubectl penstock plan show rebalance",
	}, func(ctx context.Context, p *planReview) error {
		if output != "" {
			plan, err := p.read(ctx)
			if err != nil {
				return err
			}
			return p.PrintObject(output, plan)
		}
		_, err := p.show(ctx)
		return err
	})
	output.Add(command.Flags())
	return command
}

func newPlanHistory(s *session.Session) *cobra.Command {
	var output session.Format
	command := planCommand(s, &cobra.Command{
		Use:     "history PLAN",
		Short:   "List the runs of a plan: who approved them, when, and their result",
		Example: "  kubectl penstock plan history rebalance",
	}, func(ctx context.Context, p *planReview) error {
		history, err := p.history(ctx)
		if err != nil {
			return err
		}
		if output != "" {
			return p.PrintObject(output, history)
		}
		plan, err := p.cluster.HcoV1alpha1().ConfigurationPlans().Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			plan = &v1alpha1.ConfigurationPlan{} // it was deleted, or the caller cannot read it
		}
		p.Out.Table(historyTable(history.Runs, string(plan.UID)))
		return nil
	})
	output.Add(command.Flags())
	return command
}

// historyTable lists runs, newest first. Each plan with a name numbers its runs from 1. If there
// were several plans, a column shows which runs belong to the plan with this uid.
func historyTable(runs []v1alpha1.PlanRun, uid string) screen.Table {
	out := screen.Table{Header: []string{"RUN", "OUTCOME", "STARTED", "ENDED", "APPROVED BY", "COMMENT"}, Clip: true}
	several := uid != "" && slices.ContainsFunc(runs, func(run v1alpha1.PlanRun) bool { return run.Plan != uid })
	several = several || slices.ContainsFunc(runs, func(run v1alpha1.PlanRun) bool { return run.Plan != runs[0].Plan })
	if several {
		out.Header = slices.Insert(out.Header, 1, "PLAN")
	}
	for i := range runs {
		run := &runs[i]
		who := []string{run.Approval.Username}
		for _, other := range run.Approval.Others {
			who = append(who, other.Username)
		}
		cells := []string{fmt.Sprint(run.Run), outcomeOf(run), at(&run.StartedAt), at(run.EndedAt), strings.Join(who, ", "), run.Approval.Comment}
		if several {
			cells = slices.Insert(cells, 1, planOf(run.Plan, uid))
		}
		out.Add(cells...)
	}
	return out
}

// planOf distinguishes the present plan from deleted plans of the same name.
func planOf(of, uid string) string {
	if of == uid {
		return "this"
	}
	return "earlier, " + of[:min(8, len(of))]
}

// outcomeOf returns the outcome of a run. If a user has stopped the run, the API shows a phase of
// the new computation; this function returns Stopped instead.
func outcomeOf(run *v1alpha1.PlanRun) string {
	if run.EndedAt != nil && run.Outcome == v1alpha1.PhaseDrafting {
		return v1alpha1.PhaseText("Stopped", run.RestoreRun)
	}
	return v1alpha1.PhaseText(string(run.Outcome), run.RestoreRun)
}

func at(time *metav1.Time) string {
	if time == nil || time.IsZero() {
		return ""
	}
	return time.UTC().Format("2006-01-02T15:04:05Z")
}

// InNeed returns lines about plans that wait for a user.
func InNeed(plans []v1alpha1.ConfigurationPlan) []screen.Line {
	var lines []screen.Line
	for i := range plans {
		plan := &plans[i]
		switch plan.Status.Phase {
		case v1alpha1.PhaseReviewRequired:
			what := "an approval"
			if given := given(plan); given > 0 {
				what = fmt.Sprintf("another approval (%d of %d)", given, plan.Spec.Approvals)
			}
			lines = append(lines, screen.Line{Glyph: screen.Notice, Style: screen.Yellow,
				Text: fmt.Sprintf("plan %s waits for %s, impact %s: kubectl penstock plan approve %s", plan.Name, what, plan.Status.ImpactSeverity, plan.Name)})
		case v1alpha1.PhaseFailed, v1alpha1.PhaseCompletedWithErrors, v1alpha1.PhasePrerequisiteFailed, v1alpha1.PhaseDrifted, v1alpha1.PhaseExpired:
			lines = append(lines, screen.Line{Glyph: screen.Bad, Style: screen.Red, Text: fmt.Sprintf("plan %s: %s: %s", plan.Name, plan.Status.Phase, plan.Status.Message)})
		default:
		}
	}
	return lines
}

// given returns the number of users who have approved a plan that needs two or more approvals. It
// is 0 for a plan without approval, and for a plan that needs one approval.
func given(plan *v1alpha1.ConfigurationPlan) int {
	approval := plan.Status.Approval
	if plan.Spec.Approvals < 2 || approval == nil || approval.PlanHash != plan.Status.PlanHash || approval.Run != 0 {
		return 0
	}
	return 1 + len(approval.Others)
}

// lacksApprovals reports whether a plan has an approval and needs further approvals.
func lacksApprovals(plan *v1alpha1.ConfigurationPlan) bool {
	return given(plan) > 0 && given(plan) < int(plan.Spec.Approvals)
}

// waitingForProfile is the reason of an approved plan that waits for other profiles.
const waitingForProfile = "WaitingForProfile"

// begins describes when a plan that waits for its window or for other profiles may begin.
func begins(plan *v1alpha1.ConfigurationPlan) string {
	if ready := meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == waitingForProfile {
		return v1alpha1.AfterText(plan.Spec.Requires)
	}
	window := plan.Status.Window
	if window == nil || plan.Status.Phase != v1alpha1.PhaseReviewRequired && plan.Status.Phase != v1alpha1.PhaseScheduled {
		return ""
	}
	return at(&window.OpensAt)
}

// current returns the running item of a plan, or the reason why the plan does not continue, such as
// a freeze.
func current(plan *v1alpha1.ConfigurationPlan) string {
	reason, running := "", ""
	if ready := meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		reason = ready.Reason
	}
	for _, item := range plan.Status.Items {
		if item.State == v1alpha1.ItemInProgress {
			running = item.Name
		}
	}
	return v1alpha1.CurrentText(string(plan.Status.Phase), reason, running)
}

// Table returns a table of plans.
func Table(plans []v1alpha1.ConfigurationPlan) screen.Table {
	out := screen.Table{Header: []string{"PLAN", "PROFILE", "PHASE", "IMPACT", "ITEMS"}}
	waits := slices.ContainsFunc(plans, func(plan v1alpha1.ConfigurationPlan) bool { return begins(&plan) != "" })
	tells := slices.ContainsFunc(plans, func(plan v1alpha1.ConfigurationPlan) bool { return current(&plan) != "" })
	if tells {
		out.Header = append(out.Header, "CURRENT")
	}
	if waits {
		out.Header = append(out.Header, "BEGINS")
	}
	for i := range plans {
		plan := &plans[i]
		done := 0
		for _, item := range plan.Status.Items {
			if item.State == v1alpha1.ItemCompleted || item.State == v1alpha1.ItemSkipped {
				done++
			}
		}
		cells := []string{plan.Name, string(plan.Spec.Profile), v1alpha1.PhaseText(string(plan.Status.Phase), plan.Spec.RestoreRun), string(plan.Status.ImpactSeverity), fmt.Sprintf("%d/%d", done, len(plan.Status.Items))}
		if tells {
			cells = append(cells, current(plan))
		}
		if waits {
			cells = append(cells, begins(plan))
		}
		out.Add(cells...)
	}
	return out
}

func names(s *session.Session) cobra.CompletionFunc {
	return s.Complete(func(ctx context.Context, cluster *session.Cluster) ([]string, error) {
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
