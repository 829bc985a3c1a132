package revisionobjects

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/printing"
	"github.com/penstock-project/penstock/pkg/text"
)

// maxCell bounds a cell so that a row fits on a screen; -o yaml shows everything.
const maxCell = 160

// table prints one row for each object, in rollout order.
type table struct{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Phase", Type: "string", Description: "Phase of the object."},
		{Name: "Kind", Type: "string", Description: "Kind of the object, with its group."},
		{Name: "Namespace", Type: "string", Description: "Namespace of the object."},
		{Name: "Name", Type: "string", Description: "Name of the object."},
		{Name: "State", Type: "string", Description: "Pending, Failing, Unready, Available, Superseded, Leaving, Gone or Unknown."},
		{Name: "Reason", Type: "string", Description: "Why the object is in this state: the cause, where it is known."},
		{Name: "Repaired", Type: "date", Description: "When Penstock last repaired the object."},
		{Name: "Message", Type: "string", Priority: wide, Description: "The reason in a sentence."},
		{Name: "Detail", Type: "string", Priority: wide, Description: "Text of a component about the cause."},
	}
}

// ConvertToTable prints the objects.
func (table) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	found, ok := object.(*v1alpha1.RevisionObjects)
	if !ok {
		return nil, fmt.Errorf("printing a table of objects: got a %T", object)
	}
	out := &metav1.Table{}
	for i := range found.Objects {
		o := &found.Objects[i]
		out.Rows = append(out.Rows, printing.Row(cells(o), &v1alpha1.RevisionObjects{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}))
	}
	if found.Withheld > 0 {
		warning.AddWarning(ctx, "", text.Count(found.Withheld, "object")+" withheld: you cannot get them in the cluster")
	}
	return printing.Headed(out, options, columns()), nil
}

func cells(o *v1alpha1.RevisionObjectStatus) []any {
	kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind().String()
	reason, repaired := o.Reason, ""
	if o.Cause != nil {
		reason = o.Cause.Reason
	}
	if o.LastRepair != nil {
		repaired = o.LastRepair.Time.UTC().Format("2006-01-02T15:04:05Z")
	}
	return []any{o.Phase, kind, o.Namespace, o.Name, string(o.State), reason, repaired, text.Clip(o.Message, maxCell), text.Clip(o.Detail, maxCell)}
}
