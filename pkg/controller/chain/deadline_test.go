package chain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
)

func withDelay(seconds int32) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.SuccessDelaySeconds = seconds }
}

// TestSoak plays the life of a revision that must stay available for a minute.
func TestSoak(t *testing.T) {
	waiting := report(rollout.PhaseReport{Applied: 1, Failures: []rollout.Failure{failure(rollout.ReasonProbe, false)}}, false)
	done := report(rollout.PhaseReport{Applied: 1, Available: 1}, true)
	type step struct {
		reason string
		after  time.Duration
		layer  *rollout.LayerReport
		change func(*olmv1alpha1.ClusterExtensionRevision)
		older  bool
		want   string
	}
	const (
		soaking   = "Ready=False/NotYet Available=True/RolledOut Progressing=True/Soaking Succeeded=False/Soaking Failing=False/NoFailure Stalled=False/NotStalled"
		rolling   = "Ready=False/NotYet Available=False/Unavailable Progressing=True/RollingOut Succeeded=False/NotYet Failing=False/NoFailure Stalled=False/NotStalled"
		stalled   = "Ready=False/NotYet Available=False/Unavailable Progressing=True/RollingOut Succeeded=False/NotYet Failing=False/NoFailure Stalled=True/ProgressDeadlineExceeded"
		ready     = "Ready=True/RolledOut Available=True/RolledOut Progressing=False/RolledOut Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/NotStalled"
		flickers  = "Ready=False/Unavailable Available=False/Unavailable Progressing=False/RolledOut Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/NotStalled"
		paused    = "Ready=True/Paused Available=True/RolledOut Progressing=False/Paused Succeeded=False/Soaking Failing=False/NoFailure Stalled=False/Paused"
		overtaken = "Ready=True/Superseded Available=True/RolledOut Progressing=False/Superseded Succeeded=False/NotYet Failing=False/NoFailure Stalled=False/Superseded"
	)
	cases := map[string][]step{
		"it stays": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "59 seconds", after: 59 * time.Second, layer: done, want: soaking},
			{reason: "a minute", after: time.Second, layer: done, want: ready},
			{reason: "Succeeded stays, and is not soaked again", after: time.Second, layer: waiting, want: flickers},
			{reason: "back", after: time.Second, layer: done, want: ready},
		},
		"it flips": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "a probe fails", after: 59 * time.Second, layer: waiting, want: rolling},
			{reason: "and passes: from the beginning", after: time.Second, layer: done, want: soaking},
			{reason: "59 seconds of the second minute", after: 59 * time.Second, layer: done, want: soaking},
			{reason: "a minute", after: time.Second, layer: done, want: ready},
		},
		"the deadline passes meanwhile": {
			{reason: "all available, late", layer: waiting, change: withDeadline(1), want: rolling},
			{reason: "59 seconds of the deadline are over", after: 59 * time.Second, layer: done, want: soaking},
			{reason: "it only has to stay", after: 30 * time.Second, layer: done, want: soaking},
			{reason: "it does not: the deadline is over now", after: time.Second, layer: waiting, want: stalled},
		},
		"somebody has seen enough": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "0 is no delay", after: time.Second, layer: done, change: withDelay(0), want: ready},
		},
		"a pause does not end it": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "paused, it is still as it should be", after: 10 * time.Second, layer: done, change: state(olmv1alpha1.LifecycleStatePaused), want: paused},
		},
		"a newer one comes": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "whether it would have stayed nobody knows", after: time.Hour, layer: done, older: true, want: overtaken},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			r, now := revision(withDelay(60)), noon
			for _, step := range steps {
				now = now.Add(step.after)
				if step.change != nil {
					step.change(r)
				}
				r.Status = status(r, finding{layer: step.layer, newest: !step.older}, now)
				if diff := cmp.Diff(step.want, conditions(r.Status)); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", step.reason, diff)
				}
			}
		})
	}
}

func TestSoakSaysUntilWhen(t *testing.T) {
	r := revision(withDelay(60))
	found := finding{layer: report(rollout.PhaseReport{Applied: 1, Available: 1}, true), newest: true}
	r.Status = status(r, found, noon)
	for _, kind := range []string{olmv1alpha1.ConditionSucceeded, olmv1alpha1.ConditionProgressing, olmv1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(r.Status.Conditions, kind); !strings.Contains(c.Message, "2026-01-02T12:01:00Z, after 60 seconds") {
			t.Errorf("%s says %q", kind, c.Message)
		}
	}
	if diff := cmp.Diff(r.Status, status(r, found, noon.Add(30*time.Second))); diff != "" {
		t.Errorf("status changes while nothing happens (-before +after):\n%s", diff)
	}
}

// TestSoakIsLookedAtWhenItEnds: the next pass runs at the end of the soak time, not earlier.
func TestSoakIsLookedAtWhenItEnds(t *testing.T) {
	s := set(t, numbered(1, withDelay(60), withDeadline(1)))
	if err := s.writeStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Clock = clocktesting.NewFakePassiveClock(noon.Add(20 * time.Second))
	if got := s.next(); got != 40*time.Second {
		t.Errorf("looks again after %s, want 40s", got)
	}
	s.Clock = clocktesting.NewFakePassiveClock(noon.Add(time.Minute))
	if err := s.writeStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.stored(t, 1).Status.Conditions; !meta.IsStatusConditionPresentAndEqual(got, olmv1alpha1.ConditionSucceeded, metav1.ConditionTrue) || s.next() != 0 {
		t.Errorf("a minute later it is %+v, next in %s", got, s.next())
	}
}

// TestDeadlinePassesDuringAPass: another pass follows at once for a deadline that status does not
// show yet, and none for a deadline that it shows.
func TestDeadlinePassesDuringAPass(t *testing.T) {
	s := set(t, numbered(1, withDelay(60), withDeadline(1)))
	if err := s.writeStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Clock = clocktesting.NewFakePassiveClock(noon.Add(61 * time.Second))
	if got := s.next(); got <= 0 || got > time.Second {
		t.Errorf("a soak that ended during the pass: looks again after %s", got)
	}
	if err := s.writeStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.next(); got != 0 {
		t.Errorf("nothing is left to come, and it looks again after %s", got)
	}
}
