package configurationprofiledefinition

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

type table struct{ clock clock.PassiveClock }

var _ rest.TableConvertor = table{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the profile, for spec.profile of a plan."},
		{Name: "Access", Type: "string", Description: "Whether its ServiceAccount has the rights that the definition declares."},
		{Name: "Items", Type: "integer", Description: "How many targets it configures at most."},
		{Name: "Description", Type: "string", Description: "Purpose of the profile."},
		{Name: "Age", Type: "string", Description: "Time since the definition was created."},
		{Name: "ServiceAccount", Type: "string", Priority: wide, Description: "ServiceAccount under which plans of the profile are executed."},
		{Name: "Digest", Type: "string", Priority: wide, Description: "Digest of spec; a plan names the digest that it was computed from."},
	}
}

// ConvertToTable prints a definition or a list of definitions.
func (t table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return printing.Table("definitions", object, options, columns(), t.cells)
}

func (t table) cells(definition *hco.ConfigurationProfileDefinition) []any {
	access := "Unknown"
	if found := meta.FindStatusCondition(definition.Status.Conditions, v1alpha1.ConditionAccessGranted); found != nil {
		access = string(found.Status)
	}
	return []any{definition.Name, access, len(definition.Spec.Items), definition.Spec.Description, printing.Age(t.clock, definition.CreationTimestamp),
		definition.Status.ServiceAccount, definition.Status.Digest}
}
