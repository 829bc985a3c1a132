package plans

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

type approvalOptions struct {
	hash, comment string
	run           int64
	yes, wait     bool
	// declined returns the state of the plan after the user declined. It is nil if the plan is
	// unchanged.
	declined func(context.Context) (string, error)
	timeout  time.Duration
	output   session.Format
}

func (o *approvalOptions) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.hash, "hash", "", "Approve the plan of this hash and no other. Required without a terminal, and with --yes.")
	flags.StringVar(&o.comment, "comment", "", "Why; the history keeps it.")
	flags.BoolVar(&o.yes, "yes", false, "Do not ask.")
	flags.DurationVar(&o.timeout, "timeout", 0, "Stop following, or waiting until the plan is computed, after this time, with exit code 124; the plan continues. 0 is no limit.")
	o.output.Add(flags)
}

func planCommand(s *session.Session, command *cobra.Command, do func(context.Context, *planReview) error) *cobra.Command {
	command.Args = cobra.ExactArgs(1)
	command.ValidArgsFunction = names(s)
	command.RunE = func(command *cobra.Command, args []string) error {
		cluster, err := s.Connect()
		if err != nil {
			return err
		}
		return do(command.Context(), &planReview{Session: s, cluster: cluster, name: args[0]})
	}
	return command
}

func newPlanApprove(s *session.Session) *cobra.Command {
	var options approvalOptions
	command := planCommand(s, &cobra.Command{
		Use:   "approve PLAN",
		Short: "Show a plan, ask, and approve exactly what was shown",
		Long: "Show the plan that waits, ask, and approve it by its hash: when it has changed since it was shown, nothing is\n" +
			"approved (exit code 3). Without a terminal --hash says which plan was reviewed.",
		Example: "  kubectl penstock plan approve rebalance --comment CHG-4711\n" +
			"  kubectl penstock plan approve rebalance --hash sha256:e430599c… --comment CHG-4711 --wait",
	}, func(ctx context.Context, p *planReview) error {
		complete, err := p.approve(ctx, options)
		if err != nil || !options.wait || !complete {
			return err
		}
		return p.follow(ctx, options.timeout)
	})
	options.add(command)
	command.Flags().BoolVarP(&options.wait, "wait", "w", false, "Follow the run until it has ended.")
	return command
}

// approve shows the waiting plan, and approves it when the user agrees. complete is false if other
// users have to approve it, too.
func (p *planReview) approve(ctx context.Context, options approvalOptions) (complete bool, err error) {
	if _, err := p.read(ctx); err != nil {
		return false, err
	}
	if options.hash == "" && (options.yes || !p.Person()) {
		return false, outcome.Errorf(outcome.Unknown, "--hash is required when nobody is asked: the hash of the plan that was reviewed, which kubectl penstock plan show %s prints", p.name)
	}
	plan, err := p.show(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case plan.Status.Phase != v1alpha1.PhaseReviewRequired:
		return false, outcome.Errorf(outcome.No, "plan %s is %s: it does not wait for an approval", p.name, plan.Status.Phase)
	case options.hash != "" && options.hash != plan.Status.PlanHash:
		return false, outcome.Errorf(outcome.Conflict, "plan %s has the hash %s now, not %s: read it again", p.name, plan.Status.PlanHash, options.hash)
	}
	// The server checks first: no user should agree to a change that is refused anyway.
	api := p.cluster.HcoV1alpha1().ConfigurationPlans()
	request := &v1alpha1.PlanApprovalRequest{Spec: v1alpha1.PlanApprovalRequestSpec{PlanHash: plan.Status.PlanHash, Comment: options.comment}}
	if _, err := api.Approve(ctx, p.name, request, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return false, fmt.Errorf("plan %s cannot be approved: %w", p.name, err)
	}
	if !options.yes && p.Person() {
		agreed, err := p.Confirm(ctx, fmt.Sprintf("Approve plan %s, impact %s?", p.name, plan.Status.ImpactSeverity))
		if err != nil {
			return false, err
		}
		if !agreed {
			left := "it waits for an approval as before"
			if options.declined != nil {
				if left, err = options.declined(ctx); err != nil {
					return false, err
				}
			}
			p.Err.Para(screen.Dim, screen.Waiting, fmt.Sprintf("nothing was approved or changed in the cluster; plan %s: %s", p.name, left))
			return false, outcome.Quiet(outcome.No)
		}
	}
	approved, err := api.Approve(ctx, p.name, request, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("approving plan %s: %w", p.name, err)
	}
	who := append([]v1alpha1.PlanApprover{{Username: approved.Status.Username}}, approved.Status.Others...)
	complete = len(who) >= int(plan.Spec.Approvals)
	if options.output != "" {
		return complete, p.PrintObject(options.output, approved)
	}
	next := "kubectl penstock plan run " + p.name + " follows it"
	if options.wait {
		next = "its run follows"
	}
	if !complete {
		next = fmt.Sprintf("%d of %d approvals: another person runs kubectl penstock plan approve %s", len(who), plan.Spec.Approvals, p.name)
	} else if window := plan.Status.Window; window != nil && window.OpensAt.After(p.Clock.Now()) {
		next = fmt.Sprintf("it begins at %s (%s); ", minute(window.OpensAt), window.Local) + next
	}
	p.Err.Para(screen.Green, screen.Good, fmt.Sprintf("plan %s is approved by %s; %s", p.name, who[len(who)-1].Username, next))
	return complete, nil
}

func minute(t metav1.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
