package chain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
)

// TestCauseInStatus: status shows the known parts of a cause, and no text of other writers.
func TestCauseInStatus(t *testing.T) {
	found := cause.Cause{
		Reason: "CreateContainerConfigError", Object: manifest.ID{Kind: "Pod", Namespace: "a", Name: "p"}, Container: "main",
		ExitCode: ptr.To[int32](3), Restarts: 7, Related: &manifest.ID{Kind: "Secret", Namespace: "a", Name: "login"}, Text: "hunter2",
	}
	failure := rollout.Failure{Ref: manifest.Ref{ID: manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "server"}, Version: "v1"},
		Reason: rollout.ReasonProbe, Message: "0 of 1 replica available", Cause: &found}
	status := phaseStatus(rollout.PhaseReport{Name: "deploy", Failures: []rollout.Failure{failure}}, 1)
	want := []olmv1alpha1.ObjectFailure{{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "a", Name: "server", Reason: "ProbeFailed", Message: "0 of 1 replica available",
		Cause: &olmv1alpha1.FailureCause{
			Reason: "CreateContainerConfigError", Object: olmv1alpha1.ObjectName{Kind: "Pod", Namespace: "a", Name: "p"},
			Container: "main", ExitCode: ptr.To[int32](3), Restarts: 7,
			Related: &olmv1alpha1.ObjectName{Kind: "Secret", Namespace: "a", Name: "login"},
		},
	}}
	if diff := cmp.Diff(want, status.Failing); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
