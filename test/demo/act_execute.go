package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

func executePlan(ctx context.Context, d *demo) {
	before := get(d.descheduler(ctx))
	d.approve(ctx, "CHG-4711")
	early := false
	d.execution(ctx, func(plan *v1alpha1.ConfigurationPlan) {
		items := plan.Status.Items
		if len(items) != 2 || items[0].State == v1alpha1.ItemCompleted {
			return
		}
		if now, err := d.descheduler(ctx); err != nil || now.GetGeneration() != before.GetGeneration() {
			// The first item may have completed after this state was read.
			latest, again := d.cluster.penstock.HcoV1alpha1().ConfigurationPlans().Get(ctx, planName, metav1.GetOptions{})
			early = early || again != nil || latest.Status.Items[0].State != v1alpha1.ItemCompleted
		}
	})
	d.claim(!early, "the KubeDescheduler was not written before all nodes had the first item", "generation "+fmt.Sprint(before.GetGeneration()), "another one")
	d.show(ctx, "kubectl get configurationprofiles")
	d.show(ctx, "kubectl penstock plan history "+planName)
}

// approve approves the plan by the hash that was shown with it.
func (d *demo) approve(ctx context.Context, comment string) {
	plan := d.reached(ctx, v1alpha1.PhaseReviewRequired)
	d.show(ctx, fmt.Sprintf("kubectl penstock plan approve %s --comment %q \\\n--hash %s >/dev/null", d.plan, comment, plan.Status.PlanHash))
}

// execution follows a run until it is complete. It prints each item and the reason of each wait.
func (d *demo) execution(ctx context.Context, see func(*v1alpha1.ConfigurationPlan)) {
	began := time.Now()
	reported := map[string]bool{}
	said := ""
	d.followPlan(ctx, "plan "+d.plan+" is executed", func(plan *v1alpha1.ConfigurationPlan) bool {
		see(plan)
		for _, item := range plan.Status.Items {
			if waits := strings.HasPrefix(item.Message, "Waiting "); waits && item.State == v1alpha1.ItemInProgress && item.Message != said {
				said = item.Message
				d.note("%s: %s", item.Name, item.Message)
			}
			if done := item.State == v1alpha1.ItemCompleted || item.State == v1alpha1.ItemSkipped; done && !reported[item.Name] && plan.Status.Approval != nil && plan.Status.Approval.Run > 0 {
				reported[item.Name] = true
				d.ok("%s  %s  %s", item.Name, seconds(time.Since(began)), item.Message)
			}
		}
		return plan.Status.Phase == v1alpha1.PhaseCompleted
	})
}
