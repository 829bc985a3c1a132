package main

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// undoPlan goes back to what there was before the first run.
func undoPlan(ctx context.Context, d *demo) error {
	if _, err := d.show(ctx, fmt.Sprintf("echo '{\"spec\":{\"run\":1}}' | kubectl create --raw %s/rollback -f - >/dev/null", planPath)); err != nil {
		return err
	}
	if _, err := d.reached(ctx, v1alpha1.PhaseReviewRequired); err != nil {
		return err
	}
	if _, err := d.show(ctx, fmt.Sprintf("kubectl get configplan %s -o jsonpath='{range .status.items[*]}{.action} {.targetRef.kind} {.targetRef.name}: {.impactReason}{\"\\n\"}{end}'", planName)); err != nil {
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
	_, err := d.show(ctx, fmt.Sprintf("kubectl get configplan %s --subresource=history", planName))
	return err
}
