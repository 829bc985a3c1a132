package clusterextensionrevision

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

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// table prints revisions for people.
type table struct{ clock clock.PassiveClock }

var _ rest.TableConvertor = table{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "<extension>-<revision>."},
		{Name: "Revision", Type: "integer", Description: "Number of the revision in its chain."},
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
	out := &metav1.Table{}
	add := func(obj runtime.Object) error {
		revision, ok := obj.(*olm.ClusterExtensionRevision)
		if !ok {
			return fmt.Errorf("printing a table of revisions: got a %T", obj)
		}
		out.Rows = append(out.Rows, metav1.TableRow{
			Cells:  t.cells(revision),
			Object: runtime.RawExtension{Object: obj},
		})
		return nil
	}
	if err := eachItem(object, add); err != nil {
		return nil, err
	}
	copyListMeta(out, object)
	if !withoutHeaders(options) {
		out.ColumnDefinitions = columns()
	}
	return out, nil
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
		t.age(revision.CreationTimestamp),
		decisive.Reason,
		decisive.Message,
	}
}

func (t table) age(created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(t.clock.Since(created.Time).Round(time.Second))
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

// eachItem calls f for every item of a list, or for the object itself.
func eachItem(object runtime.Object, f func(runtime.Object) error) error {
	if meta.IsListType(object) {
		return meta.EachListItem(object, f)
	}
	return f(object)
}

// copyListMeta gives a table what clients need to page and to watch.
func copyListMeta(out *metav1.Table, object runtime.Object) {
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion = list.GetResourceVersion()
		out.Continue = list.GetContinue()
		out.RemainingItemCount = list.GetRemainingItemCount()
		return
	}
	if single, err := meta.CommonAccessor(object); err == nil {
		out.ResourceVersion = single.GetResourceVersion()
	}
}

func withoutHeaders(options runtime.Object) bool {
	table, ok := options.(*metav1.TableOptions)
	return ok && table.NoHeaders
}
