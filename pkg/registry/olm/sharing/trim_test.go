package sharing

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// full returns a revision as a decoder creates it: each string is separate, and each list has spare
// capacity.
func full(number int) *olm.ClusterExtensionRevision {
	own := strings.Clone
	at := metav1.NewTime(time.Unix(1_700_000_000, 0))
	revision := &olm.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("argocd-%d", number), Labels: map[string]string{"chain": own("argocd")}, Annotations: map[string]string{"version": fmt.Sprint(number)},
			Finalizers:    append(make([]string, 0, 4), own("teardown")),
			ManagedFields: append(make([]metav1.ManagedFieldsEntry, 0, 4), metav1.ManagedFieldsEntry{Manager: own("kubectl"), Operation: metav1.ManagedFieldsOperationApply, APIVersion: own("v1alpha1"), FieldsType: own("FieldsV1"), Subresource: own("status"), Time: &at}),
		},
		Spec: olm.ClusterExtensionRevisionSpec{
			LifecycleState: olm.LifecycleStateActive, Revision: int64(number),
			Previous: append(make([]olm.PreviousRevision, 0, 4), olm.PreviousRevision{Name: "argocd-1"}),
			Phases:   append(make([]olm.RevisionPhase, 0, 4), olm.RevisionPhase{Name: own("deploy"), Objects: listOf(3, "a")}),
		},
		Status: olm.ClusterExtensionRevisionStatus{
			RequestedBy: &olm.Requester{Username: own("anna"), UID: own("1"), Groups: append(make([]string, 0, 4), own("admins"))},
			Conditions:  append(make([]metav1.Condition, 0, 8), metav1.Condition{Type: own("Ready"), Status: metav1.ConditionTrue, Reason: own("Complete"), Message: own("all is well"), LastTransitionTime: at}),
			Phases:      append(make([]olm.PhaseStatus, 0, 4), olm.PhaseStatus{Name: own("deploy"), State: olm.PhaseStateAvailable, Objects: 3}),
		},
	}
	return revision
}

// TestTrim: a trimmed object is equal to the original, and has no spare capacity. Objects share
// texts, but no memory that can be written.
func TestTrim(t *testing.T) {
	one, two := full(1), full(2)
	trim(one)
	trim(two)
	if diff := cmp.Diff(full(1), one); diff != "" {
		t.Errorf("trimming changed it (-want +got):\n%s", diff)
	}
	for name, caps := range map[string][2]int{
		"finalizers": {len(one.Finalizers), cap(one.Finalizers)}, "managed fields": {len(one.ManagedFields), cap(one.ManagedFields)},
		"previous": {len(one.Spec.Previous), cap(one.Spec.Previous)}, "phases": {len(one.Spec.Phases), cap(one.Spec.Phases)},
		"groups":     {len(one.Status.RequestedBy.Groups), cap(one.Status.RequestedBy.Groups)},
		"conditions": {len(one.Status.Conditions), cap(one.Status.Conditions)}, "status of phases": {len(one.Status.Phases), cap(one.Status.Phases)},
	} {
		if caps[0] != 1 || caps[1] != 1 {
			t.Errorf("%s: %d of %d are used, want 1 of 1", name, caps[0], caps[1])
		}
	}
	for name, words := range map[string][2]string{
		"label": {one.Labels["chain"], two.Labels["chain"]}, "finalizer": {one.Finalizers[0], two.Finalizers[0]},
		"manager": {one.ManagedFields[0].Manager, two.ManagedFields[0].Manager}, "phase": {one.Spec.Phases[0].Name, two.Spec.Phases[0].Name},
		"user": {one.Status.RequestedBy.Username, two.Status.RequestedBy.Username}, "group": {one.Status.RequestedBy.Groups[0], two.Status.RequestedBy.Groups[0]},
		"condition": {one.Status.Conditions[0].Type, two.Status.Conditions[0].Type}, "message": {one.Status.Conditions[0].Message, two.Status.Conditions[0].Message},
	} {
		if unsafe.StringData(words[0]) != unsafe.StringData(words[1]) {
			t.Errorf("%s: %q is there twice", name, words[0])
		}
	}

	// Code that reads a revision for an update changes it.
	one.Labels["chain"], one.Finalizers[0], one.Status.Conditions[0].Reason = "x", "x", "x"
	one.ManagedFields[0].Manager, one.Status.Phases[0].Objects, one.Status.RequestedBy.Groups[0] = "x", 7, "x"
	if diff := cmp.Diff(full(2), two); diff != "" {
		t.Errorf("a change of one revision changed another one (-want +got):\n%s", diff)
	}
}
