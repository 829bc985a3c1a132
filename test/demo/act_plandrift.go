package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// planDrift has somebody change what the plan set, and puts it back by another
// approval.
func planDrift(ctx context.Context, d *demo) error {
	if _, err := d.show(ctx, fmt.Sprintf("kubectl patch kubedescheduler %s -n %s --field-manager=%s --type=merge -p '{\"spec\":{\"mode\":\"Predictive\"}}'",
		deschedulerName, deschedulerSpace, stranger)); err != nil {
		return err
	}
	began := time.Now()
	plan, err := d.reached(ctx, v1alpha1.PhaseDrifted)
	if err != nil {
		return err
	}
	if err := d.claim(len(missingFrom(plan.Status.Message, ".spec.mode", stranger)) == 0,
		fmt.Sprintf("told after %s, with the field and who changed it", seconds(time.Since(began))), "a message with .spec.mode and "+stranger, plan.Status.Message); err != nil {
		return err
	}
	d.output(plan.Status.Message)
	if _, err := d.show(ctx, "kubectl get configurationprofiles"); err != nil {
		return err
	}
	if err := d.mode(ctx, "Predictive", "nothing was put back"); err != nil {
		return err
	}
	out, err := d.show(ctx, "kubectl penstock plan run "+planName)
	if err != nil {
		return err
	}
	if plan, err = d.reached(ctx, v1alpha1.PhaseReviewRequired); err != nil {
		return err
	}
	if err := d.claim(strings.Contains(out, "hash "+plan.Status.PlanHash), "the plan was computed anew, and waits for its approval", plan.Status.PlanHash, out); err != nil {
		return err
	}
	if err := d.approve(ctx, "mode is ours"); err != nil {
		return err
	}
	if err := d.execution(ctx, func(*v1alpha1.ConfigurationPlan) {}); err != nil {
		return err
	}
	return d.mode(ctx, "Automatic", "the KubeDescheduler evicts again")
}

// mode checks which one the KubeDescheduler has.
func (d *demo) mode(ctx context.Context, want, claim string) error {
	descheduler, err := d.descheduler(ctx)
	if err != nil {
		return err
	}
	mode, _, _ := unstructured.NestedString(descheduler.Object, "spec", "mode")
	return d.claim(mode == want, claim, "mode "+want, "mode "+mode)
}
