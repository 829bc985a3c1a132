package clusterextensionrevision

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

// table prints revisions for people.
type table struct{ clock clock.PassiveClock }

var _ rest.TableConvertor = table{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "<extension>-<revision>."},
		{Name: "Revision", Type: "integer", Description: "Number of the revision in its extension."},
		{Name: "State", Type: "string", Description: "Active, Paused or Archived; Deleting when the revision is on its way out."},
		{Name: "Available", Type: "string", Description: "Whether all objects are as rolled out and pass their probes."},
		{Name: "Progressing", Type: "string", Description: "Whether a rollout, an archival or a teardown goes on."},
		{Name: "Objects", Type: "integer", Description: "Number of objects."},
		{Name: "Age", Type: "string", Description: "Time since the revision was created."},
		{Name: "Reason", Type: "string", Priority: wide, Description: "Reason of the condition that matters most."},
		{Name: "Message", Type: "string", Priority: wide, Description: "Message of the condition that matters most."},
	}
}

// ConvertToTable prints one revision or a list of them.
func (t table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return printing.Table("revisions", object, options, columns(), t.cells)
}

func (t table) cells(revision *olm.ClusterExtensionRevision) []any {
	state := string(revision.Spec.LifecycleState)
	if revision.DeletionTimestamp != nil {
		state = "Deleting"
	}
	objects := int64(0)
	eachObject(revision, func(int, int, *olm.RevisionObject) { objects++ })
	decisive := decisiveCondition(revision.Status.Conditions)
	return []any{
		revision.Name,
		revision.Spec.Revision,
		state,
		string(statusOf(revision, v1alpha1.ConditionAvailable)),
		string(statusOf(revision, v1alpha1.ConditionProgressing)),
		objects,
		printing.Age(t.clock, revision.CreationTimestamp),
		decisive.Reason,
		decisive.Message,
	}
}

func statusOf(revision *olm.ClusterExtensionRevision, conditionType string) metav1.ConditionStatus {
	if condition := meta.FindStatusCondition(revision.Status.Conditions, conditionType); condition != nil {
		return condition.Status
	}
	return metav1.ConditionUnknown
}

// decisiveCondition returns the condition that tells best how the revision is:
// what needs a person comes before what goes on, and that before what is well.
// Without conditions it is empty.
func decisiveCondition(conditions []metav1.Condition) metav1.Condition {
	for _, candidate := range []struct {
		conditionType string
		status        metav1.ConditionStatus
	}{
		{v1alpha1.ConditionFailing, metav1.ConditionTrue},
		{v1alpha1.ConditionStalled, metav1.ConditionTrue},
		{v1alpha1.ConditionProgressing, metav1.ConditionTrue},
		{v1alpha1.ConditionAvailable, metav1.ConditionFalse},
		{v1alpha1.ConditionReady, metav1.ConditionFalse},
		{v1alpha1.ConditionAvailable, metav1.ConditionTrue},
		{v1alpha1.ConditionProgressing, metav1.ConditionFalse},
	} {
		found := meta.FindStatusCondition(conditions, candidate.conditionType)
		if found != nil && found.Status == candidate.status {
			return *found
		}
	}
	return metav1.Condition{}
}
