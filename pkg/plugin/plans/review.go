package plans

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

type planReview struct {
	*session.Session
	cluster *session.Cluster
	name    string
}

func (p *planReview) read(ctx context.Context) (*v1alpha1.ConfigurationPlan, error) {
	plan, err := p.cluster.HcoV1alpha1().ConfigurationPlans().Get(ctx, p.name, metav1.GetOptions{})
	if session.NotFound(err) {
		return nil, p.cluster.Unknown(ctx, p.name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading plan %s: %w", p.name, err)
	}
	return plan, nil
}

// history returns the runs of the plan, newest first. The plan may be deleted.
func (p *planReview) history(ctx context.Context) (*v1alpha1.PlanHistory, error) {
	history, err := p.cluster.HcoV1alpha1().ConfigurationPlans().GetHistory(ctx, p.name, metav1.GetOptions{})
	if session.NotFound(err) {
		return nil, p.cluster.Unknown(ctx, p.name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history of plan %s: %w", p.name, err)
	}
	return history, nil
}

// show prints a plan with its present changes, and returns it. If the hashes of both differ, it
// reads the plan again.
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
			p.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("what the plan would change now is not shown, only its changes as of when it was computed: %v", err))
			diff = nil
		case err != nil:
			return nil, fmt.Errorf("asking what plan %s would change: %w", p.name, err)
		case diff.PlanHash != plan.Status.PlanHash:
			continue // it was computed again in between
		}
		changes.PrintPlan(p.Out, plan, diff)
		return plan, nil
	}
}

func (p *planReview) source() follow.Source[*v1alpha1.ConfigurationPlan] {
	return p.cluster.Plans(metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, p.name).String()})
}
