package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// planDrift changes a value that the plan set, and restores it with another approval.
func planDrift(ctx context.Context, d *demo) {
	d.show(ctx, fmt.Sprintf("kubectl patch kubedescheduler %s -n %s --field-manager=%s --type=merge -p '{\"spec\":{\"mode\":\"Predictive\"}}'",
		deschedulerName, deschedulerSpace, stranger))
	began := time.Now()
	plan := d.reached(ctx, v1alpha1.PhaseDrifted)
	d.claim(len(missingFrom(plan.Status.Message, ".spec.mode", stranger)) == 0,
		fmt.Sprintf("reported after %s, with the field and its writer", seconds(time.Since(began))), "a message with .spec.mode and "+stranger, plan.Status.Message)
	d.output(plan.Status.Message)
	d.show(ctx, "kubectl get configurationprofiles")
	d.mode(ctx, "Predictive", "nothing was put back")
	out := d.show(ctx, "kubectl penstock plan run "+planName)
	plan = d.reached(ctx, v1alpha1.PhaseReviewRequired)
	d.claim(strings.Contains(out, "hash "+plan.Status.PlanHash), "the plan was computed again, and waits for its approval", plan.Status.PlanHash, out)
	d.approve(ctx, "mode is ours")
	d.execution(ctx, func(*v1alpha1.ConfigurationPlan) {})
	d.mode(ctx, "Automatic", "the KubeDescheduler evicts again")
}

// mode checks the mode of the KubeDescheduler.
func (d *demo) mode(ctx context.Context, want, claim string) {
	descheduler := get(d.descheduler(ctx))
	mode, _, _ := unstructured.NestedString(descheduler.Object, "spec", "mode")
	d.claim(mode == want, claim, "mode "+want, "mode "+mode)
}
