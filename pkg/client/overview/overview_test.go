package overview

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// revision returns a revision with a state and conditions of the form Type=Status.
func revision(chain string, number int64, state v1alpha1.LifecycleState, conditions ...metav1.Condition) *v1alpha1.ClusterExtensionRevision {
	out := &v1alpha1.ClusterExtensionRevision{}
	out.Name = olm.RevisionName(chain, number)
	out.Spec.Revision, out.Spec.LifecycleState = number, state
	out.Status.Conditions = conditions
	return out
}

func is(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason}
}

func TestOf(t *testing.T) {
	all := Of([]*v1alpha1.ClusterExtensionRevision{
		revision("web", 9, v1alpha1.LifecycleStateActive), revision("api", 1, v1alpha1.LifecycleStateActive),
		revision("web", 10, v1alpha1.LifecycleStatePaused),
	})
	if len(all) != 2 || all[0].Name != "api" || all[1].Newest().Name != "web-10" {
		t.Fatalf("%+v", all)
	}
	if proposed := all[1].Proposed(); proposed == nil || proposed.Name != "web-10" || all[1].Current().Name != "web-9" {
		t.Errorf("what is paused and was never rolled out is a proposal: %v", proposed)
	}
	if all[0].Proposed() != nil || all[0].Current().Name != "api-1" {
		t.Error("what is rolled out is none")
	}
	paused := revision("web", 1, v1alpha1.LifecycleStatePaused, is(v1alpha1.ConditionSucceeded, metav1.ConditionTrue, "Succeeded"))
	if Of([]*v1alpha1.ClusterExtensionRevision{paused})[0].Proposed() != nil {
		t.Error("what was rolled out and is paused now is none")
	}
}

func TestNeedsPerson(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		conditions []metav1.Condition
		want       string
	}{
		"well":      {"nobody has to look", []metav1.Condition{is(v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready")}, ""},
		"going":     {"it continues by itself", []metav1.Condition{is(v1alpha1.ConditionProgressing, metav1.ConditionTrue, "RollingOut")}, ""},
		"failing":   {"failing comes before stalled", []metav1.Condition{is(v1alpha1.ConditionStalled, metav1.ConditionTrue, "Deadline"), is(v1alpha1.ConditionFailing, metav1.ConditionTrue, "Collision")}, "Collision"},
		"held":      {"its owner waits", []metav1.Condition{is(v1alpha1.ConditionHeld, metav1.ConditionTrue, "RolledBack")}, "RolledBack"},
		"no way":    {"it should have been rolled back", []metav1.Condition{is(v1alpha1.ConditionRolledBack, metav1.ConditionFalse, "NoEarlierSuccess")}, "NoEarlierSuccess"},
		"went back": {"it was, which is well", []metav1.Condition{is(v1alpha1.ConditionRolledBack, metav1.ConditionTrue, "RolledBack")}, ""},
		"frozen":    {"somebody has to end the freeze", []metav1.Condition{is(v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Frozen")}, "Frozen"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := NeedsPerson(revision("web", 1, v1alpha1.LifecycleStateActive, tc.conditions...)); found != nil {
				got = found.Reason
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
