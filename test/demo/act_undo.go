package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// undoPlan restores the state before the first run.
func undoPlan(ctx context.Context, d *demo) {
	out := d.show(ctx, fmt.Sprintf("kubectl penstock plan undo %s --run 1", planName))
	plan := d.reached(ctx, v1alpha1.PhaseReviewRequired)
	d.claim(strings.Contains(out, "hash "+plan.Status.PlanHash), "the plan that was shown waits for its approval, by its hash", plan.Status.PlanHash, out)
	d.approve(ctx, "back to before")
	d.execution(ctx, func(*v1alpha1.ConfigurationPlan) {})
	d.untouched(ctx, "everything that the plan had set is as it was before, and the MachineConfig is gone from all nodes")
	d.show(ctx, "kubectl penstock plan history "+planName)
}
