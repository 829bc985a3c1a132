package chain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/metriccheck"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

func withMetrics(names ...string) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.MetricChecks = names }
}

func said(name string, verdict olmv1alpha1.MetricVerdict, at time.Time) olmv1alpha1.MetricMeasurement {
	return olmv1alpha1.MetricMeasurement{Name: name, Verdict: verdict, Time: metav1.NewTime(at), Message: "2 is above the maximum of 1"}
}

// TestMetricGate plays the answers of a MetricCheck for a revision that must stay available for a
// minute.
func TestMetricGate(t *testing.T) {
	waiting := report(rollout.PhaseReport{Applied: 1, Failures: []rollout.Failure{failure(rollout.ReasonProbe, false)}}, false)
	done := report(rollout.PhaseReport{Applied: 1, Available: 1}, true)
	type step struct {
		reason  string
		after   time.Duration
		layer   *rollout.LayerReport
		verdict olmv1alpha1.MetricVerdict
		change  func(*olmv1alpha1.ClusterExtensionRevision)
		want    string
		back    bool
	}
	const (
		soaking = "Ready=False/NotYet Available=True/RolledOut Progressing=True/Soaking Succeeded=False/Soaking Failing=False/NoFailure Stalled=False/NotStalled"
		lacking = "Ready=False/NotYet Available=True/RolledOut Progressing=True/Soaking Succeeded=False/Soaking Failing=False/NoFailure Stalled=True/MetricCheckUnknown"
		rolling = "Ready=False/NotYet Available=False/Unavailable Progressing=True/RollingOut Succeeded=False/NotYet Failing=False/NoFailure Stalled=False/NotStalled"
		unknown = "Ready=False/NotYet Available=True/RolledOut Progressing=True/MetricCheckUnknown Succeeded=False/MetricCheckUnknown Failing=False/NoFailure Stalled=False/NotStalled"
		stalled = "Ready=False/NotYet Available=True/RolledOut Progressing=True/MetricCheckUnknown Succeeded=False/MetricCheckUnknown Failing=False/NoFailure Stalled=True/MetricCheckUnknown"
		failed  = "Ready=False/NotYet Available=True/RolledOut Progressing=False/MetricCheckFailed Succeeded=False/MetricCheckFailed Failing=True/MetricCheckFailed Stalled=True/MetricCheckFailed"
		ready   = "Ready=True/RolledOut Available=True/RolledOut Progressing=False/RolledOut Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/NotStalled"
	)
	for name, steps := range map[string][]step{
		"yes": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "yes, and the time is not over", after: 45 * time.Second, layer: done, verdict: "Yes", want: soaking},
			{reason: "the time is over", after: 15 * time.Second, layer: done, want: ready},
			{reason: "a later answer changes nothing", after: time.Second, layer: done, verdict: "No", want: ready},
		},
		"no": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "one No fails it at once", after: 10 * time.Second, layer: done, verdict: "No", want: failed, back: true},
			{reason: "it stays so", after: time.Hour, layer: done, want: failed, back: true},
			{reason: "who does not want the check has it succeed", layer: done, change: withMetrics(), want: ready},
		},
		"no, and then its objects fail": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "No", after: 10 * time.Second, layer: done, verdict: "No", want: failed, back: true},
			{reason: "an object fails", after: time.Second, layer: waiting, want: rolling},
			{reason: "the soak begins anew", after: time.Second, layer: done, want: soaking},
		},
		"unknown": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "unknown, and there is time", after: 40 * time.Second, layer: done, verdict: "Unknown", want: soaking},
			{reason: "the time is over: it holds", after: 20 * time.Second, layer: done, want: unknown},
			{reason: "for as long as a rollout may take", after: 9 * time.Minute, layer: done, want: unknown},
			{reason: "then a person has to look, and nothing is rolled back", after: time.Minute, layer: done, want: stalled},
			{reason: "it continues by itself with an answer", after: time.Minute, layer: done, verdict: "Yes", want: ready},
		},
		"nobody answers": {
			{reason: "all available", layer: done, want: soaking},
			{reason: "the time is over", after: time.Minute, layer: done, want: soaking},
			{reason: "a person has to look", after: 10 * time.Minute, layer: done, want: lacking},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, now := revision(withDelay(60), withDeadline(10), withMetrics("errors")), noon
			r.Spec.OnFailure = olmv1alpha1.OnFailureRollback
			for _, step := range steps {
				now = now.Add(step.after)
				if step.change != nil {
					step.change(r)
				}
				found := finding{layer: step.layer, newest: true, measured: r.Status.MetricChecks}
				if step.verdict != "" {
					found.measured = []olmv1alpha1.MetricMeasurement{said("errors", step.verdict, now)}
				}
				r.Status = status(r, found, now)
				if diff := cmp.Diff(step.want, conditions(r.Status)); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", step.reason, diff)
				}
				if wantsBack(r, now) != step.back {
					t.Errorf("%s: it is to be rolled back: %t", step.reason, !step.back)
				}
			}
		})
	}
}

type answers struct {
	measured []olmv1alpha1.MetricMeasurement
	next     time.Time
	asked    []metriccheck.Subject
}

func (a *answers) Measured(metriccheck.Subject, []olmv1alpha1.MetricMeasurement) []olmv1alpha1.MetricMeasurement {
	return a.measured
}

func (a *answers) Ask(of metriccheck.Subject, _ []olmv1alpha1.MetricMeasurement) time.Time {
	a.asked = append(a.asked, of)
	return a.next
}

func (a *answers) Changed() <-chan event.TypedGenericEvent[string] { return nil }

// TestMetricsAreAsked: MetricChecks run once all objects are available, for the namespaces of the
// workloads, and stop after the success.
func TestMetricsAreAsked(t *testing.T) {
	s := set(t, numbered(1, withDelay(60), withMetrics("errors"), func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.Phases = []olmv1alpha1.RevisionPhase{{Name: "deploy", Objects: []olmv1alpha1.RevisionObject{
			{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding", Namespace: "kube-system", Name: "a"}, {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "cd", Name: "a"},
		}}}
	}))
	asked := &answers{next: noon.Add(20 * time.Second)}
	s.Metrics = asked
	if err := s.writeStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.next(); got != 20*time.Second {
		t.Errorf("looks again after %s, want 20s", got)
	}
	want := []metriccheck.Subject{{Extension: "argocd", Revision: s.revisions[0].UID, Namespaces: []string{"cd"}, Since: noon, Checks: []string{"errors"}}}
	if diff := cmp.Diff(want, asked.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	s.Clock = clocktesting.NewFakePassiveClock(noon.Add(time.Minute))
	asked.measured, asked.asked = []olmv1alpha1.MetricMeasurement{said("errors", "Yes", noon.Add(50*time.Second))}, nil
	if err := s.writeStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.stored(t, 1).Status
	if !meta.IsStatusConditionTrue(got.Conditions, olmv1alpha1.ConditionSucceeded) || len(got.MetricChecks) != 1 || s.next() != 0 || asked.asked != nil {
		t.Errorf("a minute later it is %+v, next in %s, asked %v", got, s.next(), asked.asked)
	}
}

// TestMetricRollsBack: a revision that fails a MetricCheck is rolled back once, for that reason.
func TestMetricRollsBack(t *testing.T) {
	b := newBackend(t, storetest.Client(t), "p", numbered(2, stuck, withMetrics("errors"), func(r *olmv1alpha1.ClusterExtensionRevision) {
		for kind, status := range map[string]metav1.ConditionStatus{olmv1alpha1.ConditionAvailable: metav1.ConditionTrue, olmv1alpha1.ConditionSucceeded: metav1.ConditionFalse} {
			meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reasonSoaking, LastTransitionTime: metav1.NewTime(noon)})
		}
	}), numbered(1, worked))
	p := b.process(0)
	p.metrics, p.complete = &answers{measured: []olmv1alpha1.MetricMeasurement{said("errors", "No", noon)}}, true
	for range 3 {
		if err := p.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	back := b.told(t, 2)
	if back == nil || back.Reason != reasonMetricFailed || !strings.HasSuffix(back.Message, "argocd-3 brings back the content of argocd-1: MetricCheck errors says No: 2 is above the maximum of 1") || len(b.revisions(t)) != 3 || p.asked != 1 {
		t.Errorf("there are %d revisions, asked %d times; RolledBack is %+v", len(b.revisions(t)), p.asked, back)
	}
}
