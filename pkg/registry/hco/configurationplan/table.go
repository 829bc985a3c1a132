package configurationplan

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/hco"
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
	out := &metav1.Table{}
	add := func(obj runtime.Object) error {
		plan, ok := obj.(*hco.ConfigurationPlan)
		if !ok {
			return fmt.Errorf("printing a table of plans: got a %T", obj)
		}
		out.Rows = append(out.Rows, metav1.TableRow{Cells: t.cells(plan), Object: runtime.RawExtension{Object: obj}})
		return nil
	}
	if meta.IsListType(object) {
		if err := meta.EachListItem(object, add); err != nil {
			return nil, err
		}
	} else if err := add(object); err != nil {
		return nil, err
	}
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion, out.Continue, out.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	} else if single, err := meta.CommonAccessor(object); err == nil {
		out.ResourceVersion = single.GetResourceVersion()
	}
	if given, ok := options.(*metav1.TableOptions); !ok || !given.NoHeaders {
		out.ColumnDefinitions = columns()
	}
	return out, nil
}

func (t table) cells(plan *hco.ConfigurationPlan) []any {
	phase := string(plan.Status.Phase)
	if plan.DeletionTimestamp != nil {
		phase = "Deleting"
	}
	done := 0
	for _, item := range plan.Status.Items {
		if item.State == hco.ItemCompleted || item.State == hco.ItemSkipped {
			done++
		}
	}
	items, impact := "", string(plan.Status.ImpactSeverity)
	if all := len(plan.Status.Items); all > 0 {
		items = fmt.Sprintf("%d/%d", done, all)
	}
	age := "<unknown>"
	if !plan.CreationTimestamp.IsZero() {
		age = duration.HumanDuration(t.clock.Since(plan.CreationTimestamp.Time).Round(time.Second))
	}
	return []any{plan.Name, string(plan.Spec.Profile), string(plan.Spec.Action), phase, impact, items, age, plan.Status.PlanHash, plan.Status.Message}
}
