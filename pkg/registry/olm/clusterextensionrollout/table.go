package clusterextensionrollout

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

type table struct{ clock clock.PassiveClock }

var _ rest.TableConvertor = table{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the rollout."},
		{Name: "Set", Type: "string", Description: "ClusterExtensionSet that asks for the change."},
		{Name: "Phase", Type: "string", Description: "Phase of the rollout."},
		{Name: "Succeeded", Type: "string", Description: "Clusters that succeeded, of all clusters that change."},
		{Name: "Failed", Type: "integer", Description: "Clusters that failed, or that were rolled back."},
		{Name: "Groups", Type: "integer", Description: "Groups of clusters that see the same change."},
		{Name: "Age", Type: "string", Description: "Time since the rollout was created."},
		{Name: "Digest", Type: "string", Priority: wide, Description: "Digest that an approval takes now."},
		{Name: "Message", Type: "string", Priority: wide, Description: "For whom the rollout waits, and what helps."},
	}
}

// ConvertToTable prints a rollout or a list of rollouts.
func (t table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return printing.Table("rollouts", object, options, columns(), t.cells)
}

func (t table) cells(rollout *olm.ClusterExtensionRollout) []any {
	succeeded, failed, all := 0, 0, 0
	for _, cluster := range rollout.Spec.Clusters {
		if !cluster.Present {
			all++
		}
	}
	for _, cluster := range rollout.Status.Clusters {
		switch fleet.State(cluster.State) {
		case fleet.Succeeded:
			succeeded++
		case fleet.Failed, fleet.RolledBack:
			failed++
		}
	}
	return []any{rollout.Name, rollout.Spec.Set.Name, rollout.Status.Phase, fmt.Sprintf("%d/%d", succeeded, all), failed, len(rollout.Spec.Groups),
		printing.Age(t.clock, rollout.CreationTimestamp), rollout.Status.Digest, rollout.Status.Message}
}
