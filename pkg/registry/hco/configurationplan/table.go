package configurationplan

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

// table prints plans for people.
type table struct{ clock clock.PassiveClock }

var _ rest.TableConvertor = table{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the plan."},
		{Name: "Profile", Type: "string", Description: "What it configures."},
		{Name: "Action", Type: "string", Description: "DryRun, Apply or Ignore."},
		{Name: "Phase", Type: "string", Description: "Where the plan is."},
		{Name: "Impact", Type: "string", Description: "The highest impact of its items."},
		{Name: "Items", Type: "string", Description: "Items that are done, of all."},
		{Name: "Age", Type: "string", Description: "Time since the plan was created."},
		{Name: "Hash", Type: "string", Priority: wide, Description: "Hash of the plan, by which it is approved."},
		{Name: "Message", Type: "string", Priority: wide, Description: "What goes on, or what to do next."},
	}
}

// ConvertToTable prints one plan or a list of them.
func (t table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return printing.Table("plans", object, options, columns(), t.cells)
}

func (t table) cells(plan *hco.ConfigurationPlan) []any {
	phase := string(plan.Status.Phase)
	if plan.DeletionTimestamp != nil {
		phase = "Deleting"
	}
	done := 0
	for _, item := range plan.Status.Items {
		if governance.Done(v1alpha1.ItemState(item.State)) {
			done++
		}
	}
	items, impact := "", string(plan.Status.ImpactSeverity)
	if all := len(plan.Status.Items); all > 0 {
		items = fmt.Sprintf("%d/%d", done, all)
	}
	return []any{plan.Name, string(plan.Spec.Profile), string(plan.Spec.Action), phase, impact, items, printing.Age(t.clock, plan.CreationTimestamp), plan.Status.PlanHash, plan.Status.Message}
}
