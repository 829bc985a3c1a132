package configurationplan

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

type table struct{ clock clock.PassiveClock }

var _ rest.TableConvertor = table{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the plan."},
		{Name: "Profile", Type: "string", Description: "Profile that the plan configures."},
		{Name: "Action", Type: "string", Description: "DryRun, Apply or Ignore."},
		{Name: "Phase", Type: "string", Description: "Phase of the plan, and the run that it undoes."},
		{Name: "Impact", Type: "string", Description: "The highest impact of its items."},
		{Name: "Items", Type: "string", Description: "Items that are done, of all items."},
		{Name: "Current", Type: "string", Description: "The item that runs, or why the plan does not go on: FieldConflict, PlanStale, Frozen and other reasons."},
		{Name: "Begins", Type: "string", Description: "When a plan that waits may begin: after the profiles that it requires, or in its next window, in UTC, or now."},
		{Name: "Age", Type: "string", Description: "Time since the plan was created."},
		{Name: "Approvals", Type: "string", Priority: wide, Description: "How many people approved the plan that is shown, of how many it needs."},
		{Name: "Hash", Type: "string", Priority: wide, Description: "Hash of the plan, by which it is approved."},
		{Name: "Message", Type: "string", Priority: wide, Description: "Present activity, or the next step."},
	}
}

// ConvertToTable prints a plan or a list of plans.
func (t table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return printing.Table("plans", object, options, columns(), t.cells)
}

func (t table) cells(plan *hco.ConfigurationPlan) []any {
	phase := v1alpha1.PhaseText(string(plan.Status.Phase), plan.Spec.RestoreRun)
	if plan.DeletionTimestamp != nil {
		phase = "Deleting"
	}
	done, running := 0, ""
	for _, item := range plan.Status.Items {
		if governance.Done(v1alpha1.ItemState(item.State)) {
			done++
		}
		if item.State == hco.ItemInProgress {
			running = item.Name
		}
	}
	items, impact := "", string(plan.Status.ImpactSeverity)
	if all := len(plan.Status.Items); all > 0 {
		items = fmt.Sprintf("%d/%d", done, all)
	}
	return []any{plan.Name, string(plan.Spec.Profile), string(plan.Spec.Action), phase, impact, items,
		v1alpha1.CurrentText(string(plan.Status.Phase), reasonOf(plan), running), t.begins(plan), printing.Age(t.clock, plan.CreationTimestamp),
		approvals(plan), plan.Status.PlanHash, plan.Status.Message}
}

// begins describes when a waiting plan may begin.
func (t table) begins(plan *hco.ConfigurationPlan) string {
	window := plan.Status.Window
	waits := plan.Status.Phase == hco.PhaseReviewRequired || plan.Status.Phase == hco.PhaseScheduled ||
		plan.Status.Phase == hco.PhaseInProgress && reasonOf(plan) == governance.ReasonWaitingForWindow
	switch {
	case reasonOf(plan) == governance.ReasonWaitingForProfile:
		return v1alpha1.AfterText(plan.Spec.Requires)
	case window == nil || !waits:
		return ""
	case !window.OpensAt.After(t.clock.Now()):
		return "now"
	default:
		return window.OpensAt.UTC().Format("2006-01-02T15:04Z")
	}
}

// reasonOf returns the reason of a plan's Ready condition, or "".
func reasonOf(plan *hco.ConfigurationPlan) string {
	if ready := meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// approvals returns the given and the needed number of approvals of the shown plan.
func approvals(plan *hco.ConfigurationPlan) string {
	if plan.Status.PlanHash == "" {
		return ""
	}
	given := 0
	if approval := external(plan.Status.Approval); approval != nil && approval.PlanHash == plan.Status.PlanHash {
		given = len(governance.Approvers(approval))
	}
	return fmt.Sprintf("%d/%d", given, needed(plan))
}
