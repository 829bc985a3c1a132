package clusterextensionrevision

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

type table struct{ clock clock.PassiveClock }

var _ rest.TableConvertor = table{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "<extension>-<revision>."},
		{Name: "Version", Type: "string", Description: "Version of the extension."},
		{Name: "State", Type: "string", Description: "Active, Paused or Archived; Deleting while the revision is being deleted."},
		{Name: "Ready", Type: "string", Description: "How many of its objects are as rolled out and pass their probes; objects that newer revisions have taken over do not count as available."},
		{Name: "Available", Type: "string", Description: "Whether all objects that still belong to it are as rolled out and pass their probes."},
		{Name: "Progressing", Type: "string", Description: "Whether a rollout, an archival or a teardown is in progress."},
		{Name: "Reason", Type: "string", Description: "Reason of the condition that matters most."},
		{Name: "Age", Type: "string", Description: "Time since the revision was created."},
		{Name: "Phase", Type: "string", Priority: wide, Description: "The first phase that is not available, its number, and how many of its objects are available; empty when all phases are."},
		{Name: "Succeeded", Type: "string", Priority: wide, Description: "Whether the rollout was complete once."},
		{Name: "Message", Type: "string", Priority: wide, Description: "Message of the condition that matters most."},
	}
}

// ConvertToTable prints a revision or a list of revisions. It orders the revisions of an extension
// by number; the store orders by name, argocd-10 before argocd-2.
func (t table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	out, err := printing.TextTable("revisions", object, options, columns(), t.write)
	// Most lists are sorted already: only extensions with ten or more revisions are not.
	if order := func(a, b metav1.TableRow) int { return byExtension(a.Object.Object, b.Object.Object) }; err == nil && !slices.IsSortedFunc(out.Rows, order) {
		slices.SortStableFunc(out.Rows, order)
	}
	return out, err
}

func byExtension(a, b runtime.Object) int {
	one, other := a.(*olm.ClusterExtensionRevision), b.(*olm.ClusterExtensionRevision)
	extension, _, _ := olm.ChainOf(one.Name)
	others, _, _ := olm.ChainOf(other.Name)
	return cmp.Or(cmp.Compare(extension, others), cmp.Compare(one.Spec.Revision, other.Spec.Revision))
}

func (t table) write(revision *olm.ClusterExtensionRevision, cells []string) {
	state := string(revision.Spec.LifecycleState)
	if revision.DeletionTimestamp != nil {
		state = "Deleting"
	}
	decisive := decisiveCondition(revision.Status.Conditions)
	copy(cells, []string{
		revision.Name,
		revision.Annotations[v1alpha1.VersionAnnotation],
		state,
		readyObjects(revision),
		string(statusOf(revision, v1alpha1.ConditionAvailable)),
		string(statusOf(revision, v1alpha1.ConditionProgressing)),
		decisive.Reason,
		printing.Age(t.clock, revision.CreationTimestamp),
		currentPhase(revision),
		string(statusOf(revision, v1alpha1.ConditionSucceeded)),
		decisive.Message,
	})
}

// readyObjects returns the numbers of available and of all objects, such as "13/15". It returns "-"
// for an archived revision.
func readyObjects(revision *olm.ClusterExtensionRevision) string {
	if revision.Spec.LifecycleState == olm.LifecycleStateArchived {
		return "-"
	}
	objects, available := 0, int32(0)
	for i := range revision.Spec.Phases {
		objects += revision.Spec.Phases[i].Count()
	}
	for i := range revision.Status.Phases {
		available += revision.Status.Phases[i].Available
	}
	return strconv.Itoa(int(available)) + "/" + strconv.Itoa(objects)
}

// currentPhase describes the first phase that is not available, such as "deploy 1/2, 4 of 8". 1/2
// is the position of the phase. 4 of its 8 objects are available or belong to newer revisions.
func currentPhase(revision *olm.ClusterExtensionRevision) string {
	for i := range revision.Status.Phases {
		switch phase := &revision.Status.Phases[i]; phase.State {
		case olm.PhaseStateAvailable, olm.PhaseStateSuperseded, olm.PhaseStateArchived:
		default:
			return phase.Name + " " + strconv.Itoa(i+1) + "/" + strconv.Itoa(len(revision.Status.Phases)) +
				", " + strconv.Itoa(int(phase.Available+phase.Superseded)) + " of " + strconv.Itoa(int(phase.Objects))
		}
	}
	return ""
}

func statusOf(revision *olm.ClusterExtensionRevision, conditionType string) metav1.ConditionStatus {
	if condition := meta.FindStatusCondition(revision.Status.Conditions, conditionType); condition != nil {
		return condition.Status
	}
	return metav1.ConditionUnknown
}

// decisiveCondition returns the most important condition. Conditions that need a user come first,
// then those in progress, then healthy conditions. Without conditions it returns an empty
// condition.
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
