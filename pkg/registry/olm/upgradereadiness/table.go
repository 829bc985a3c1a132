package upgradereadiness

import (
	"cmp"
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

// longestWarning bounds the verdict so that it fits into a header.
const longestWarning = 1000

// table prints one row for each finding. The verdict is sent as a warning, like the notes of a
// diff.
type table struct{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Severity", Type: "string", Description: "Blocks, BreaksRollback, ActBefore or Look."},
		{Name: "Certainty", Type: "string", Description: "Certain, Declared or Guess."},
		{Name: "Revision", Type: "string", Description: "Revision that has the object; otherwise the extension, plan or ChartKind."},
		{Name: "Kind", Type: "string", Description: "apiVersion and kind of the object."},
		{Name: "Object", Type: "string", Description: "Namespace and name of the object."},
		{Name: "Removed In", Type: "string", Description: "Version of Kubernetes that does not serve the apiVersion."},
		{Name: "Replacement", Type: "string", Description: "apiVersion and kind to use instead."},
		{Name: "Acknowledged By", Type: "string", Description: "User who accepts the finding for the target."},
		{Name: "Evidence", Type: "string", Priority: wide, Description: "Evidence of the finding."},
		{Name: "Fix", Type: "string", Priority: wide, Description: "A command that helps."},
		{Name: "ID", Type: "string", Priority: wide, Description: "Name of the finding in an acknowledgement."},
	}
}

// ConvertToTable prints an answer.
func (table) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	answer, ok := object.(*v1alpha1.UpgradeReadiness)
	if !ok {
		return nil, fmt.Errorf("printing a table of findings: got a %T", object)
	}
	out := &metav1.Table{}
	for i := range answer.Findings {
		found := &answer.Findings[i]
		where, kind, name := found.Revision, found.Kind, found.Name
		where = cmp.Or(where, found.Extension, found.Plan, found.ChartKind)
		if kind != "" {
			kind = schema.FromAPIVersionAndKind(found.APIVersion, kind).GroupVersion().String() + " " + kind
		}
		if found.Namespace != "" {
			name = found.Namespace + "/" + name
		}
		by := ""
		if found.Acknowledged != nil {
			by = found.Acknowledged.By
		}
		cells := []any{string(found.Severity), string(found.Certainty), where, kind, name, found.RemovedIn, found.Replacement, by, found.Evidence, found.Fix, found.ID}
		out.Rows = append(out.Rows, printing.Row(cells, &v1alpha1.UpgradeReadiness{ObjectMeta: metav1.ObjectMeta{Name: where}}))
	}
	warning.AddWarning(ctx, "", text.Line(fmt.Sprintf("%s: %s (lifecycle table of Kubernetes %s)", answer.Verdict, answer.Message, answer.Lifecycle), longestWarning))
	if answer.Omitted > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("findings left out: %d; ask for one extension with kubectl penstock ready --extension NAME", answer.Omitted))
	}
	return printing.Headed(out, options, columns()), nil
}
