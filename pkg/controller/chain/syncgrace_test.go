package chain

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// TestStatusHoldsUntilWatchesAnswer: the first passes of a process have no answers. They do not
// change the status of a healthy revision until the grace ends.
func TestStatusHoldsUntilWatchesAnswer(t *testing.T) {
	well := numbered(2)
	well.Status = status(well, finding{newest: true, layer: report(rollout.PhaseReport{Applied: 1, Available: 1}, true)}, noon)
	cases := map[string]struct {
		reason   string
		failures []rollout.Failure
		change   func(*olmv1alpha1.ClusterExtensionRevision)
		after    time.Duration
		want     metav1.ConditionStatus
	}{
		"on its way": {
			reason: "nothing is known", failures: []rollout.Failure{unknownFailure(rollout.ReasonWaiting)}, want: metav1.ConditionTrue,
		},
		"a gate on its way": {
			reason: "what its probe reads is not", failures: []rollout.Failure{unknownFailure(rollout.ReasonProbe)}, want: metav1.ConditionTrue,
		},
		"for too long": {
			reason: "somebody has to be told", failures: []rollout.Failure{unknownFailure(rollout.ReasonWaiting)}, after: syncGrace, want: metav1.ConditionUnknown,
		},
		"in trouble": {
			reason: "the server does not answer", failures: []rollout.Failure{unknownFailure(rollout.ReasonUnreachable)}, want: metav1.ConditionUnknown,
		},
		"another one is wrong": {
			reason:   "that is known",
			failures: []rollout.Failure{unknownFailure(rollout.ReasonWaiting), failure(rollout.ReasonProbe, false)}, want: metav1.ConditionFalse,
		},
		"a new generation": {
			reason: "status speaks of the old one", failures: []rollout.Failure{unknownFailure(rollout.ReasonWaiting)},
			change: func(r *olmv1alpha1.ClusterExtensionRevision) { r.Generation++ }, want: metav1.ConditionUnknown,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := well.DeepCopy()
			if tc.change != nil {
				tc.change(r)
			}
			s := set(t, r)
			clock := clocktesting.NewFakePassiveClock(noon.Add(time.Hour))
			s.Clock = clock
			layer := report(rollout.PhaseReport{Failures: tc.failures}, false)
			layer.Unknown = true
			for _, f := range tc.failures {
				layer.Unknown = layer.Unknown && f.Unknown
			}
			s.report.Layers = []rollout.LayerReport{*layer}
			for _, at := range []time.Duration{0, tc.after} {
				clock.SetTime(noon.Add(time.Hour + at))
				if err := s.writeStatus(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got := meta.FindStatusCondition(s.stored(t, 2).Status.Conditions, olmv1alpha1.ConditionAvailable)
			if got.Status != tc.want {
				t.Errorf("%s: Available is %s, want %s", tc.reason, got.Status, tc.want)
			}
			if held := got.LastTransitionTime.Time.Equal(noon); held != (tc.want == metav1.ConditionTrue) {
				t.Errorf("%s: it has been so since %s", tc.reason, got.LastTransitionTime)
			}
		})
	}
}

func unknownFailure(reason string) rollout.Failure {
	f := failure(reason, false)
	f.Unknown = true
	return f
}
