package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// errDeleted ends the watch when the plan is deleted.
var errDeleted = errors.New("it was deleted")

func newPlanReject(s *session.Session) *cobra.Command {
	reason := ""
	command := planCommand(s, &cobra.Command{
		Use:   "reject PLAN",
		Short: "Set a plan to Ignore: it is not executed and not watched",
		Long: "Set spec.action to Ignore. Changes of an earlier run stay, and are not watched. kubectl penstock plan run\n" +
			"computes the plan again.",
		Example: "  kubectl penstock plan reject rebalance --reason \"not before the audit\"",
	}, func(ctx context.Context, p *planReview) error {
		plan, err := p.read(ctx)
		if err != nil {
			return err
		}
		if plan.Status.Phase == v1alpha1.PhaseInProgress {
			return outcome.Errorf(outcome.No, "plan %s is being executed: kubectl penstock plan stop %s ends that first", p.name, p.name)
		}
		if err := p.act(ctx, plan, v1alpha1.ActionIgnore, reason); err != nil {
			return err
		}
		p.Out.Para(screen.Green, screen.Good, "plan "+p.name+" is rejected")
		return nil
	})
	command.Flags().StringVar(&reason, "reason", "", "Why; an annotation of the plan keeps it.")
	return command
}

func newPlanStop(s *session.Session) *cobra.Command {
	return planCommand(s, &cobra.Command{
		Use:     "stop PLAN",
		Short:   "Stop a run between two steps",
		Long:    "Set spec.action to DryRun. Changes that were made stay; the rest is planned again and waits for an approval.",
		Example: "  kubectl penstock plan stop rebalance",
	}, func(ctx context.Context, p *planReview) error {
		plan, err := p.read(ctx)
		if err != nil {
			return err
		}
		if err := p.act(ctx, plan, v1alpha1.ActionDryRun, ""); err != nil {
			return err
		}
		p.Out.Para(screen.Green, screen.Good, "plan "+p.name+" stops; what it has changed stays. kubectl penstock plan undo "+p.name+" goes back")
		return nil
	})
}

func newPlanRun(s *session.Session) *cobra.Command {
	var options approvalOptions
	command := planCommand(s, &cobra.Command{
		Use:   "run PLAN",
		Short: "Compute a plan if necessary, show it, ask, execute and follow it",
		Long: "Do what is missing until the plan is in effect: a plan that failed, expired, drifted or was rejected is computed again;\n" +
			"a plan that waits is shown, and approved if you agree; a plan that is being executed is followed.",
		Example: "  kubectl penstock plan run rebalance --comment CHG-4711\n" +
			"  kubectl penstock plan run rebalance --hash sha256:e430599c… --timeout 2h",
	}, func(ctx context.Context, p *planReview) error {
		plan, err := p.read(ctx)
		if err != nil {
			return err
		}
		switch plan.Status.Phase {
		case v1alpha1.PhaseInProgress, v1alpha1.PhaseScheduled:
			return p.follow(ctx, options.timeout)
		case v1alpha1.PhaseReviewRequired:
		case v1alpha1.PhaseIgnored:
			err = p.act(ctx, plan, v1alpha1.ActionDryRun, "")
		case v1alpha1.PhasePending, v1alpha1.PhaseDrafting, "":
		default:
			options.declined = p.waits(plan)
			_, err = p.cluster.HcoV1alpha1().ConfigurationPlans().Retry(ctx, p.name, &v1alpha1.PlanRetryRequest{}, metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("having plan %s computed again: %w", p.name, err)
		}
		return p.approveAndFollow(ctx, options)
	})
	options.add(command)
	return command
}

func newPlanUndo(s *session.Session) *cobra.Command {
	var options approvalOptions
	command := planCommand(s, &cobra.Command{
		Use:   "undo PLAN",
		Short: "Restore the state before a run, by another reviewed plan",
		Long: "Compute a plan that restores what the targets had before a run, show it, and execute it if you agree.\n" +
			"Without a terminal the plan is only computed and shown; plan approve --hash executes it.",
		Example: "  kubectl penstock plan undo rebalance --comment \"back to before\"\n" +
			"  kubectl penstock plan undo rebalance --run 1",
	}, func(ctx context.Context, p *planReview) error {
		plan, err := p.hasRun(ctx, options.run)
		if err != nil {
			return err
		}
		options.declined = p.putBack(plan)
		request := &v1alpha1.PlanRollbackRequest{Spec: v1alpha1.PlanRollbackRequestSpec{Run: options.run}}
		if _, err := p.cluster.HcoV1alpha1().ConfigurationPlans().Rollback(ctx, p.name, request, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("undoing plan %s: %w", p.name, err)
		}
		return p.approveAndFollow(ctx, options)
	})
	options.add(command)
	command.Flags().Int64Var(&options.run, "run", 0, "Run to undo. Default: the last one.")
	return command
}

// hasRun returns an error if there is no run to undo: no run with the number, or no run if the
// number is 0.
func (p *planReview) hasRun(ctx context.Context, number int64) (*v1alpha1.ConfigurationPlan, error) {
	plan, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	history, err := p.history(ctx)
	if err != nil {
		return nil, err
	}
	var runs []string
	earlier := ""
	for i := range history.Runs {
		switch {
		case history.Runs[i].Plan != string(plan.UID):
			if history.Runs[i].Run == number {
				earlier = "; a deleted plan of this name had that run, which cannot be undone"
			}
			continue
		case history.Runs[i].Run == number:
			return plan, nil
		}
		runs = append(runs, strconv.FormatInt(history.Runs[i].Run, 10))
	}
	switch {
	case len(runs) == 0:
		return nil, outcome.Errorf(outcome.No, "plan %s was never executed: there is nothing to undo%s", p.name, earlier)
	case number != 0:
		slices.Reverse(runs) // the runs are listed newest first
		return nil, outcome.Errorf(outcome.No, "plan %s has no run %d; it has %s%s", p.name, number, session.Enumerate(runs), earlier)
	}
	return plan, nil
}

// waits returns a function that describes, after the user declined, the state of the newly computed
// plan.
func (p *planReview) waits(before *v1alpha1.ConfigurationPlan) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		return fmt.Sprintf("it was %s, and was computed again: it now waits for an approval, and until then does not look for drift; kubectl penstock plan approve %s approves it later",
			before.Status.Phase, p.name), nil
	}
}

// putBack returns a function that withdraws the request of an undo after the user declined.
func (p *planReview) putBack(before *v1alpha1.ConfigurationPlan) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		now, err := p.read(ctx)
		if err != nil {
			return "", err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": now.UID, "resourceVersion": now.ResourceVersion},
			"spec":     map[string]any{"restoreRun": before.Spec.RestoreRun, "expires": before.Spec.Expires},
		})
		if err != nil {
			return "", fmt.Errorf("encoding the change of plan %s: %w", p.name, err)
		}
		if _, err := p.cluster.HcoV1alpha1().ConfigurationPlans().Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return "", fmt.Errorf("withdrawing the undo of plan %s: %w; the undo still waits for an approval", p.name, err)
		}
		return "the undo is withdrawn, and the plan is computed as before; kubectl penstock plan show " + p.name + " shows it", nil
	}
}

// approveAndFollow waits until the plan is computed, asks for an approval, and follows it.
func (p *planReview) approveAndFollow(ctx context.Context, options approvalOptions) error {
	plan, err := p.computed(ctx, options.timeout)
	if err != nil {
		return err
	}
	switch {
	case plan.Status.Phase == v1alpha1.PhaseCompleted:
		p.Out.Para(screen.Green, screen.Good, fmt.Sprintf("plan %s: %s", p.name, plan.Status.Message))
		return nil
	case plan.Status.Phase == v1alpha1.PhaseInProgress, plan.Status.Phase == v1alpha1.PhaseScheduled:
		return p.follow(ctx, options.timeout)
	case plan.Status.Phase != v1alpha1.PhaseReviewRequired:
		return outcome.Errorf(outcome.No, "plan %s is %s: %s", p.name, plan.Status.Phase, plan.Status.Message)
	case options.hash == "" && !p.Person():
		if _, err := p.show(ctx); err != nil {
			return err
		}
		p.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("plan %s waits for an approval: kubectl penstock plan approve %s --hash %s", p.name, p.name, plan.Status.PlanHash))
		return nil
	}
	options.wait = true
	if complete, err := p.approve(ctx, options); err != nil || !complete {
		return err
	}
	return p.follow(ctx, options.timeout)
}

// computed waits until the status is about the current spec, and the computation has ended.
func (p *planReview) computed(ctx context.Context, timeout time.Duration) (*v1alpha1.ConfigurationPlan, error) {
	plan, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	generation := plan.Generation
	waiting, cancel := session.Within(ctx, timeout)
	defer cancel()
	err = p.source().Each(waiting, func(all []*v1alpha1.ConfigurationPlan) (bool, error) {
		if len(all) == 0 {
			return true, outcome.Errorf(outcome.No, "plan %s was deleted", p.name)
		}
		plan = all[0]
		status := &plan.Status
		waits := status.Phase == "" || status.Phase == v1alpha1.PhasePending || status.Phase == v1alpha1.PhaseDrafting
		return status.ObservedGeneration >= generation && !waits, nil
	})
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("plan %s is %s: %s: %w", p.name, plan.Status.Phase, plan.Status.Message, context.Cause(waiting))
	}
	return plan, err
}

// act sets the action of a plan, unless it has changed since it was read.
func (p *planReview) act(ctx context.Context, plan *v1alpha1.ConfigurationPlan, action v1alpha1.Action, reason string) error {
	metadata := map[string]any{"uid": plan.UID, "resourceVersion": plan.ResourceVersion}
	if reason != "" {
		metadata["annotations"] = map[string]any{overview.ReasonAnnotation: reason}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"action": action}})
	if err != nil {
		return fmt.Errorf("encoding the change of plan %s: %w", p.name, err)
	}
	if _, err := p.cluster.HcoV1alpha1().ConfigurationPlans().Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("setting action %s of plan %s: %w", action, p.name, err)
	}
	return nil
}

func (p *planReview) follow(ctx context.Context, timeout time.Duration) error {
	following, cancel := session.Within(ctx, timeout)
	defer cancel()
	err := progress.Following[[]*v1alpha1.ConfigurationPlan]{
		Each: p.source().Follow, Screen: p.Err, Clock: p.Clock,
		Picture: func(all []*v1alpha1.ConfigurationPlan) []screen.Line {
			if len(all) == 0 {
				return []screen.Line{{Text: "plan " + p.name + ": " + errDeleted.Error()}}
			}
			return progress.PlanLines(all[0])
		},
		Ended: func(all []*v1alpha1.ConfigurationPlan) (bool, error) {
			if len(all) == 0 {
				return true, outcome.Errorf(outcome.No, "plan %s: %w", p.name, errDeleted)
			}
			plan := all[0]
			if plan.Status.Phase == v1alpha1.PhaseReviewRequired && plan.Status.Approval != nil && !lacksApprovals(plan) {
				return false, nil // the controller has not seen the approval yet
			}
			switch verdict, reason := overview.PlanVerdict(plan); {
			case verdict == overview.Done:
				return true, nil
			case verdict == overview.Stopped:
				return true, outcome.Errorf(outcome.No, "plan %s is not in effect: %s", p.name, reason)
			case plan.Status.Phase == v1alpha1.PhaseReviewRequired:
				return true, outcome.Errorf(outcome.No, "plan %s waits for an approval: %s", p.name, plan.Status.Message)
			}
			return false, nil
		},
	}.Run(following)
	switch outcome.Of(err) {
	case outcome.TimedOut, outcome.Interrupted:
		p.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("plan %s continues by itself. kubectl penstock plan run %s follows it, kubectl penstock plan stop %s stops it", p.name, p.name, p.name))
	}
	return err
}
