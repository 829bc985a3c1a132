package command

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestObjectLine: equal words of state, reason and cause are printed once.
func TestObjectLine(t *testing.T) {
	for want, object := range map[string]v1alpha1.RevisionObjectStatus{
		"ConfigMap a/x: Superseded":                             {State: v1alpha1.ObjectStateSuperseded, Reason: "Superseded"},
		"ConfigMap a/x: Failing, Collision":                     {State: v1alpha1.ObjectStateFailing, Reason: "Collision", Cause: &v1alpha1.FailureCause{Reason: "Collision"}},
		"ConfigMap a/x: Unready, ProbeFailed, CrashLoopBackOff": {State: v1alpha1.ObjectStateUnready, Reason: "ProbeFailed", Cause: &v1alpha1.FailureCause{Reason: "CrashLoopBackOff"}},
		"ConfigMap a/x: Available":                              {State: v1alpha1.ObjectStateAvailable},
	} {
		object.APIVersion, object.Kind, object.Namespace, object.Name = "v1", "ConfigMap", "a", "x"
		if got := objectLine(&object).Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
