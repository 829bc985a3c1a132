package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// undoPlan goes back to what there was before the first run.
func undoPlan(ctx context.Context, d *demo) error {
	out, err := d.show(ctx, fmt.Sprintf("kubectl penstock plan undo %s --run 1", planName))
	if err != nil {
		return err
	}
	plan, err := d.reached(ctx, v1alpha1.PhaseReviewRequired)
	if err != nil {
		return err
	}
	if err := d.claim(strings.Contains(out, "hash "+plan.Status.PlanHash), "the plan that was shown waits for its approval, by its hash", plan.Status.PlanHash, out); err != nil {
		return err
	}
	if err := d.approve(ctx, "back to before"); err != nil {
		return err
	}
	if err := d.execution(ctx, func(*v1alpha1.ConfigurationPlan) {}); err != nil {
		return err
	}
	if err := d.untouched(ctx, "everything that the plan had set is as it was before, and the MachineConfig is gone from all nodes"); err != nil {
		return err
	}
	_, err = d.show(ctx, "kubectl penstock plan history "+planName)
	return err
}
