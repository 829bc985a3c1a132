package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// revision returns a revision with two phases that was created at noon.
func revision(change ...func(*olmv1alpha1.ClusterExtensionRevision)) *olmv1alpha1.ClusterExtensionRevision {
	r := &olmv1alpha1.ClusterExtensionRevision{}
	r.Name, r.Generation, r.CreationTimestamp = "argocd-2", 3, metav1.NewTime(noon)
	r.Spec.LifecycleState, r.Spec.Revision = olmv1alpha1.LifecycleStateActive, 2
	r.Spec.Phases = []olmv1alpha1.RevisionPhase{{Name: "crds"}, {Name: "deploy"}}
	for _, c := range change {
		c(r)
	}
	return r
}

func succeeded(r *olmv1alpha1.ClusterExtensionRevision) {
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: olmv1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: reasonRolledOut, LastTransitionTime: metav1.NewTime(noon),
	})
}

func available(r *olmv1alpha1.ClusterExtensionRevision) {
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: olmv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: reasonRolledOut, LastTransitionTime: metav1.NewTime(noon),
	})
}

func state(s olmv1alpha1.LifecycleState) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.LifecycleState = s }
}

func deleted(r *olmv1alpha1.ClusterExtensionRevision) {
	r.DeletionTimestamp = &metav1.Time{Time: noon}
}

func withDeadline(minutes int32) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.ProgressDeadlineMinutes = minutes }
}

func failure(reason string, person bool) rollout.Failure {
	return rollout.Failure{
		Ref:    manifest.Ref{ID: manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "argocd", Name: "server"}, Version: "v1"},
		Reason: reason, NeedsPerson: person, Message: "0 of 1 replicas available",
	}
}

// report returns a layer with a finished first phase, and the given second phase.
func report(deploy rollout.PhaseReport, complete bool) *rollout.LayerReport {
	deploy.Name, deploy.Reached, deploy.Objects = "deploy", true, 1
	return &rollout.LayerReport{Revision: 2, Complete: complete, Phases: []rollout.PhaseReport{
		{Name: "crds", Reached: true, Objects: 2, Applied: 2, Available: 2}, deploy,
	}}
}

func TestStatusConditions(t *testing.T) {
	waiting := report(rollout.PhaseReport{Applied: 1, Failures: []rollout.Failure{failure(rollout.ReasonProbe, false)}}, false)
	rejected := report(rollout.PhaseReport{Failures: []rollout.Failure{failure(rollout.ReasonRejected, true)}}, false)
	drifted := report(rollout.PhaseReport{Failures: []rollout.Failure{failure(rollout.ReasonUnreachable, false)}}, false)
	unknown := report(rollout.PhaseReport{Failures: []rollout.Failure{failure(rollout.ReasonUnreachable, false)}}, false)
	unknown.Unknown, unknown.Phases[1].Failures[0].Unknown = true, true
	refused := failure(rollout.ReasonUnreachable, false)
	refused.Refused, refused.Stuck = true, true
	stuck := report(rollout.PhaseReport{Failures: []rollout.Failure{refused}}, false)
	done := report(rollout.PhaseReport{Applied: 1, Available: 1}, true)
	cases := map[string]struct {
		reason   string
		revision *olmv1alpha1.ClusterExtensionRevision
		found    finding
		later    time.Duration
		want     string
	}{
		"rolling out": {
			"it waits for a probe", revision(), finding{layer: waiting, newest: true}, 0,
			"Ready=False/NotYet Available=False/Unavailable Progressing=True/RollingOut Succeeded=False/NotYet Failing=False/NoFailure Stalled=False/NotStalled",
		},
		"rolled out": {
			"all is well", revision(), finding{layer: done, newest: true}, 0,
			"Ready=True/RolledOut Available=True/RolledOut Progressing=False/RolledOut Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/NotStalled",
		},
		"unavailable after success": {
			"Succeeded is a latch, and the rollout is over", revision(succeeded), finding{layer: waiting, newest: true}, 0,
			"Ready=False/Unavailable Available=False/Unavailable Progressing=False/RolledOut Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/NotStalled",
		},
		"repairing after success": {
			"an object is not as it should be", revision(succeeded), finding{layer: drifted, newest: true}, 0,
			"Ready=False/Unavailable Available=False/Unavailable Progressing=True/Repairing Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/NotStalled",
		},
		"rejected": {
			"only a person can help", revision(), finding{layer: rejected, newest: true}, 0,
			"Ready=False/NotYet Available=False/Unavailable Progressing=True/RollingOut Succeeded=False/NotYet Failing=True/ApplyRejected Stalled=True/ApplyRejected",
		},
		"refused for long": {
			"somebody should look, and it is tried again all the same", revision(), finding{layer: stuck, newest: true}, 0,
			"Ready=False/NotYet Available=False/Unavailable Progressing=True/RollingOut Succeeded=False/NotYet Failing=True/TargetUnreachable Stalled=False/NotStalled",
		},
		"deleted, refused for long": {
			"as while it is rolled out", revision(succeeded, deleted), finding{leaving: []rollout.Failure{failure(rollout.ReasonTerminating, false), refused}}, 0,
			"Ready=False/TearingDown Available=False/TearingDown Progressing=True/TearingDown Succeeded=True/RolledOut Failing=True/TargetUnreachable Stalled=False/NotStalled",
		},
		"within the deadline": {
			"nine minutes of ten", revision(withDeadline(10)), finding{layer: waiting, newest: true}, 9 * time.Minute,
			"Ready=False/NotYet Available=False/Unavailable Progressing=True/RollingOut Succeeded=False/NotYet Failing=False/NoFailure Stalled=False/NotStalled",
		},
		"superseded": {
			"a newer revision is being rolled out", revision(succeeded), finding{layer: done, successor: "argocd-3"}, 0,
			"Ready=True/Superseded Available=True/RolledOut Progressing=False/Superseded Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/Superseded",
		},
		"superseded before it succeeded": {
			"what is left of it does not make it succeed", revision(), finding{layer: done, successor: "argocd-3"}, 0,
			"Ready=True/Superseded Available=True/RolledOut Progressing=False/Superseded Succeeded=False/NotYet Failing=False/NoFailure Stalled=False/Superseded",
		},
		"superseded, unknown": {
			"what it still has may be as it was", revision(available, succeeded), finding{layer: unknown, successor: "argocd-3"}, 0,
			"Ready=Unknown/Unknown Available=Unknown/Unknown Progressing=False/Superseded Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/Superseded",
		},
		"superseded, frozen": {
			"what it still has is not repaired", revision(succeeded), finding{layer: drifted, successor: "argocd-3", freeze: &rollout.Freeze{}}, 0,
			"Ready=False/Unavailable Available=False/Unavailable Progressing=False/Frozen Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/Frozen",
		},
		"superseded, well and frozen": {
			"there is nothing that would be written", revision(succeeded), finding{layer: done, successor: "argocd-3", freeze: &rollout.Freeze{}}, 0,
			"Ready=True/Superseded Available=True/RolledOut Progressing=False/Superseded Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/Superseded",
		},
		"paused and frozen": {
			"a pause says it already", revision(state(olmv1alpha1.LifecycleStatePaused)), finding{layer: waiting, newest: true, freeze: &rollout.Freeze{}}, 0,
			"Ready=True/Paused Available=False/Unavailable Progressing=False/Paused Succeeded=False/NotYet Failing=False/NoFailure Stalled=False/Paused",
		},
		"paused": {
			"nothing goes on", revision(state(olmv1alpha1.LifecycleStatePaused)), finding{layer: waiting, newest: true}, 0,
			"Ready=True/Paused Available=False/Unavailable Progressing=False/Paused Succeeded=False/NotYet Failing=False/NoFailure Stalled=False/Paused",
		},
		"archived": {
			"it did succeed once", revision(succeeded, state(olmv1alpha1.LifecycleStateArchived)), finding{}, 0,
			"Ready=True/Archived Available=False/Archived Progressing=False/Archived Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/NotStalled",
		},
		"archived, objects to go": {
			"pruning goes on", revision(state(olmv1alpha1.LifecycleStateArchived)),
			finding{leaving: []rollout.Failure{failure(rollout.ReasonTerminating, false)}}, 0,
			"Ready=False/TearingDown Available=False/Archived Progressing=True/TearingDown Succeeded=False/Archived Failing=False/NoFailure Stalled=False/NotStalled",
		},
		"deleted, held": {
			"instances exist", revision(succeeded, deleted),
			finding{leaving: []rollout.Failure{failure(rollout.ReasonTerminating, false), failure(rollout.ReasonCRDInstances, true)}}, 0,
			"Ready=False/TearingDown Available=False/TearingDown Progressing=True/TearingDown Succeeded=True/RolledOut Failing=True/InstancesExist Stalled=True/InstancesExist",
		},
		"unknown after success": {
			"what cannot be seen may be as it was", revision(available, succeeded), finding{layer: unknown, newest: true}, 0,
			"Ready=Unknown/Unknown Available=Unknown/Unknown Progressing=False/RolledOut Succeeded=True/RolledOut Failing=False/NoFailure Stalled=False/NotStalled",
		},
		"unknown, and not available before": {
			"what was not there then is not there because nobody looks", revision(), finding{layer: unknown, newest: true}, 0,
			"Ready=False/NotYet Available=False/Unavailable Progressing=True/RollingOut Succeeded=False/NotYet Failing=False/NoFailure Stalled=False/NotStalled",
		},
		"invalid": {
			"it cannot be compiled", revision(), finding{invalid: errors.New("no such probe")}, 0,
			"Ready=False/Invalid Available=False/Invalid Progressing=False/Invalid Failing=True/Invalid Stalled=True/Invalid",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := status(tc.revision, tc.found, noon.Add(tc.later))
			if diff := cmp.Diff(tc.want, conditions(got)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			if got.ObservedGeneration != tc.revision.Generation {
				t.Errorf("observedGeneration is %d, want %d", got.ObservedGeneration, tc.revision.Generation)
			}
			again := tc.revision.DeepCopy()
			again.Status = got
			if said := advice.Revision(again, nil); said.Reason == "" || strings.Contains(said.Do, "newer version") {
				t.Errorf("nobody who asks why is told what to do: %+v", said)
			}
			if diff := cmp.Diff(got, status(again, tc.found, noon.Add(tc.later+time.Second))); diff != "" {
				t.Errorf("the same finding again changes status: (-first +second)\n%s", diff)
			}
		})
	}
}

// TestFailingSurvivesARestart: a new process does not know how long an object has been refused, but
// status does.
func TestFailingSurvivesARestart(t *testing.T) {
	seen := func(change ...func(*rollout.Failure)) finding {
		f := failure(rollout.ReasonUnreachable, false)
		f.Refused = true
		for _, c := range change {
			c(&f)
		}
		return finding{newest: true, layer: report(rollout.PhaseReport{Failures: []rollout.Failure{f}}, false)}
	}
	failing := func(r *olmv1alpha1.ClusterExtensionRevision, found finding) bool {
		found.stillStuck(r)
		r.Status = status(r, found, noon)
		return meta.IsStatusConditionTrue(r.Status.Conditions, olmv1alpha1.ConditionFailing)
	}
	cases := map[string]struct {
		reason string
		next   finding
		want   bool
	}{
		"the same":       {"it goes on", seen(), true},
		"another object": {"that one has its own time", seen(func(f *rollout.Failure) { f.Name = "other" }), false},
		"another reason": {"as above", seen(func(f *rollout.Failure) { f.Reason = rollout.ReasonNotServed }), false},
		"no answer":      {"the object is not at fault", seen(func(f *rollout.Failure) { f.Refused = false }), false},
		"over":           {"it was cured", finding{newest: true, layer: report(rollout.PhaseReport{Applied: 1, Available: 1}, true)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := revision()
			if failing(r, seen()) {
				t.Fatal("it is Failing at once")
			}
			if !failing(r, seen(func(f *rollout.Failure) { f.Stuck = true })) {
				t.Fatal("it is not Failing when it is stuck")
			}
			if got := failing(r, tc.next); got != tc.want {
				t.Errorf("%s: Failing is %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// kubectl wait ignores a condition of an older generation. It would wait forever for a succeeded
// revision that was paused and resumed.
func TestSucceededIsOfThisGeneration(t *testing.T) {
	done := finding{layer: report(rollout.PhaseReport{Applied: 1, Available: 1}, true), newest: true}
	for name, tc := range map[string]struct {
		state olmv1alpha1.LifecycleState
		found finding
	}{
		"GoesOn":   {olmv1alpha1.LifecycleStateActive, done},
		"Paused":   {olmv1alpha1.LifecycleStatePaused, done},
		"Archived": {olmv1alpha1.LifecycleStateArchived, finding{}},
		"Invalid":  {olmv1alpha1.LifecycleStateActive, finding{invalid: errors.New("no such probe")}},
	} {
		t.Run(name, func(t *testing.T) {
			r := revision(succeeded, state(tc.state))
			was := meta.FindStatusCondition(r.Status.Conditions, olmv1alpha1.ConditionSucceeded)
			got := meta.FindStatusCondition(status(r, tc.found, noon.Add(time.Hour)).Conditions, olmv1alpha1.ConditionSucceeded)
			if got.ObservedGeneration != r.Generation {
				t.Errorf("Succeeded is of generation %d, want %d", got.ObservedGeneration, r.Generation)
			}
			got.ObservedGeneration = was.ObservedGeneration
			if diff := cmp.Diff(was, got); diff != "" {
				t.Errorf("the rest stays (-before +after):\n%s", diff)
			}
		})
	}
}

func TestStatusStallsBehindTheDeadline(t *testing.T) {
	r := revision(withDeadline(10))
	found := finding{layer: report(rollout.PhaseReport{Applied: 1, Failures: []rollout.Failure{failure(rollout.ReasonProbe, false)}}, false), newest: true}
	r.Status = status(r, found, noon)
	r.Status = status(r, found, noon.Add(10*time.Minute))
	if c := meta.FindStatusCondition(r.Status.Conditions, olmv1alpha1.ConditionStalled); c.Status != metav1.ConditionTrue || c.Reason != reasonDeadline {
		t.Errorf("after the deadline Stalled is %s/%s, want True/%s", c.Status, c.Reason, reasonDeadline)
	}
	found.layer = report(rollout.PhaseReport{Applied: 1, Available: 1}, true)
	if got := status(r, found, noon.Add(11*time.Minute)); !meta.IsStatusConditionFalse(got.Conditions, olmv1alpha1.ConditionStalled) {
		t.Error("a rollout that completes behind its deadline is still Stalled")
	}
}

func TestStatusNamesPhaseObjectAndMessageInTheFirstLine(t *testing.T) {
	found := finding{newest: true, layer: report(rollout.PhaseReport{Applied: 1, Failures: []rollout.Failure{failure(rollout.ReasonProbe, false)}}, false)}
	got := status(revision(), found, noon)
	want := "phase deploy (2 of 2): Deployment.apps argocd/server: 0 of 1 replicas available"
	if c := meta.FindStatusCondition(got.Conditions, olmv1alpha1.ConditionProgressing); c.Message != want {
		t.Errorf("Progressing says %q, want %q", c.Message, want)
	}
}

func TestStatusBoundsFailures(t *testing.T) {
	many := rollout.PhaseReport{}
	for range olmv1alpha1.MaxReportedFailures + 7 {
		f := failure(rollout.ReasonProbe, false)
		f.Message = strings.Repeat("é", olmv1alpha1.MaxMessageLength)
		many.Failures = append(many.Failures, f)
	}
	phase := status(revision(), finding{layer: report(many, false), newest: true}, noon).Phases[1]
	if len(phase.Failing) != olmv1alpha1.MaxReportedFailures || phase.FailingOmitted != 7 {
		t.Errorf("%d failing objects and %d omitted, want %d and 7", len(phase.Failing), phase.FailingOmitted, olmv1alpha1.MaxReportedFailures)
	}
	if n := len(phase.Failing[0].Message); n > olmv1alpha1.MaxMessageLength || !strings.HasSuffix(phase.Failing[0].Message, "é…") {
		t.Errorf("a message of %d bytes that ends in %q", n, phase.Failing[0].Message[n-4:])
	}
}

func TestPhaseStatesFollowTheSpecAndKeepEmptyPhases(t *testing.T) {
	r := revision(func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.Phases = []olmv1alpha1.RevisionPhase{{Name: "empty"}, {Name: "crds"}, {Name: "also-empty"}, {Name: "deploy"}, {Name: "last"}}
	})
	layer := report(rollout.PhaseReport{Applied: 1, Failures: []rollout.Failure{failure(rollout.ReasonProbe, false)}}, false)
	var got []string
	for _, phase := range phaseStatuses(r, layer) {
		got = append(got, fmt.Sprintf("%s=%s", phase.Name, phase.State))
	}
	want := []string{"empty=Available", "crds=Available", "also-empty=Available", "deploy=Progressing", "last=Pending"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// conditions prints conditions as Type=Status/Reason in the order of the API.
func conditions(s olmv1alpha1.ClusterExtensionRevisionStatus) string {
	var out []string
	for _, kind := range []string{
		olmv1alpha1.ConditionReady, olmv1alpha1.ConditionAvailable, olmv1alpha1.ConditionProgressing,
		olmv1alpha1.ConditionSucceeded, olmv1alpha1.ConditionFailing, olmv1alpha1.ConditionStalled,
	} {
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
			out = append(out, fmt.Sprintf("%s=%s/%s", kind, c.Status, c.Reason))
		}
	}
	return strings.Join(out, " ")
}

func TestStatusStaysWithinItsLimitWithEveryPhaseFailing(t *testing.T) {
	r, layer := revision(), &rollout.LayerReport{}
	r.Spec.Phases = nil
	for i := range olmv1alpha1.MaxPhases {
		name := fmt.Sprintf("phase-%d", i)
		phase := rollout.PhaseReport{Name: name, Reached: true}
		for range 100 {
			f := failure(rollout.ReasonProbe, true)
			f.Name, f.Namespace = strings.Repeat("n", 253), strings.Repeat("s", 63)
			f.Message = strings.Repeat("m", 2*olmv1alpha1.MaxMessageLength)
			phase.Failures = append(phase.Failures, f)
		}
		layer.Phases = append(layer.Phases, phase)
		r.Spec.Phases = append(r.Spec.Phases, olmv1alpha1.RevisionPhase{Name: name})
	}
	encoded, err := json.Marshal(status(r, finding{layer: layer, newest: true, began: noon}, noon))
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) > olmv1alpha1.MaxStatusBytes {
		t.Errorf("status takes %d bytes, more than %d", len(encoded), olmv1alpha1.MaxStatusBytes)
	}
}
