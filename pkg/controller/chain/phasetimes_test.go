package chain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// times prints the phases of a status as name=state(start..available), in minutes after noon.
func times(s olmv1alpha1.ClusterExtensionRevisionStatus) string {
	minutes := func(at *metav1.Time) string {
		if at == nil {
			return ""
		}
		return fmt.Sprint(at.Sub(noon).Minutes())
	}
	var out []string
	for _, phase := range s.Phases {
		out = append(out, fmt.Sprintf("%s=%s(%s..%s)", phase.Name, phase.State, minutes(phase.StartedAt), minutes(phase.AvailableAt)))
	}
	return strings.Join(out, " ")
}

// layerOf returns a layer with the phases crds and deploy, with one object each.
func layerOf(crds, deploy rollout.PhaseReport) *rollout.LayerReport {
	crds.Name, crds.Objects = "crds", 1
	deploy.Name, deploy.Objects = "deploy", 1
	return &rollout.LayerReport{Revision: 2, Phases: []rollout.PhaseReport{crds, deploy}, Complete: crds.Available+deploy.Available == 2}
}

// TestPhaseTimes: each phase has times, which are written only when the state of a phase changes.
func TestPhaseTimes(t *testing.T) {
	var (
		pending  = rollout.PhaseReport{}
		complete = rollout.PhaseReport{Reached: true, Applied: 1, Available: 1}
		waiting  = rollout.PhaseReport{Reached: true, Applied: 1, Failures: []rollout.Failure{failure(rollout.ReasonProbe, false)}}
		refused  = rollout.PhaseReport{Failures: []rollout.Failure{failure(rollout.ReasonCollision, true)}}
		taken    = rollout.PhaseReport{Reached: true, Superseded: 1}
	)
	imported := func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Annotations = map[string]string{olmv1alpha1.RequestedByAnnotation: "alice"}
	}
	older := func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Status.Phases = []olmv1alpha1.PhaseStatus{{Name: "crds", State: olmv1alpha1.PhaseStateAvailable}, {Name: "deploy", State: olmv1alpha1.PhaseStateProgressing}}
	}
	ahead := func(r *olmv1alpha1.ClusterExtensionRevision) {
		at := metav1.NewTime(noon.Add(time.Hour))
		r.Status.Phases = []olmv1alpha1.PhaseStatus{{Name: "crds", State: olmv1alpha1.PhaseStateProgressing, StartedAt: &at}, {Name: "deploy", State: olmv1alpha1.PhaseStatePending}}
	}
	for name, tc := range map[string]struct {
		reason string
		before func(*olmv1alpha1.ClusterExtensionRevision)
		// passes begin at minute 1, 3, 5 … and are judged one minute later. In a pass without a
		// layer, the revision is archived.
		passes []*rollout.LayerReport
		want   []string
	}{
		"Rollout": {
			reason: "each phase begins with the pass that reaches it, and is available when that pass, or a later one, says so",
			passes: []*rollout.LayerReport{layerOf(waiting, pending), layerOf(complete, waiting), layerOf(complete, complete)},
			want: []string{"crds=Progressing(1..) deploy=Pending(..)", "crds=Available(1..4) deploy=Progressing(3..)",
				"crds=Available(1..4) deploy=Available(3..6)"},
		},
		"AtOnce":  {reason: "one pass may do it all", passes: []*rollout.LayerReport{layerOf(complete, complete)}, want: []string{"crds=Available(1..2) deploy=Available(1..2)"}},
		"Refused": {reason: "an attempt is a start", passes: []*rollout.LayerReport{layerOf(refused, pending)}, want: []string{"crds=Failing(1..) deploy=Pending(..)"}},
		"Repair": {
			reason: "what was available once keeps that time",
			passes: []*rollout.LayerReport{layerOf(complete, complete), layerOf(complete, waiting), layerOf(complete, complete)},
			want: []string{"crds=Available(1..2) deploy=Available(1..2)", "crds=Available(1..2) deploy=Progressing(1..2)",
				"crds=Available(1..2) deploy=Available(1..2)"},
		},
		"Superseded": {
			reason: "what a newer revision takes was not available here",
			passes: []*rollout.LayerReport{layerOf(complete, waiting), layerOf(complete, taken)},
			want:   []string{"crds=Available(1..2) deploy=Progressing(1..)", "crds=Available(1..2) deploy=Superseded(1..)"},
		},
		"Archived": {
			reason: "a timeline outlives the rollout",
			passes: []*rollout.LayerReport{layerOf(complete, waiting), nil},
			want:   []string{"crds=Available(1..2) deploy=Progressing(1..)", "crds=Archived(1..2) deploy=Archived(1..)"},
		},
		"Imported": {
			reason: "it was rolled out elsewhere", before: imported,
			passes: []*rollout.LayerReport{layerOf(complete, waiting), layerOf(complete, complete)},
			want:   []string{"crds=Available(..) deploy=Progressing(..)", "crds=Available(..) deploy=Available(..)"},
		},
		"OlderStatus": {
			reason: "nobody noted when these phases began", before: older,
			passes: []*rollout.LayerReport{layerOf(complete, complete)}, want: []string{"crds=Available(..) deploy=Available(..)"},
		},
		"ClockBehind": {
			reason: "the clock of another replica may be ahead", before: ahead,
			passes: []*rollout.LayerReport{layerOf(complete, waiting)}, want: []string{"crds=Available(60..60) deploy=Progressing(1..)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := revision()
			if tc.before != nil {
				tc.before(r)
			}
			var got []string
			for i, layer := range tc.passes {
				began := noon.Add(time.Duration(2*i+1) * time.Minute)
				found := finding{layer: layer, newest: layer != nil, began: began}
				r.Status = status(r, found, began.Add(time.Minute))
				got = append(got, times(r.Status))
				found.began = began.Add(time.Hour)
				if again := status(r, found, began.Add(time.Hour)); !equality.Semantic.DeepEqual(again.Phases, r.Status.Phases) {
					t.Errorf("a pass that found the same writes other times: %s", times(again))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
