package stage

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// revisions generates phases as a user may write them: known and unknown kinds in any order, and
// empty phases.
func revisions() *rapid.Generator[[]Phase] {
	pool := kinds("example.com", "Widget", "Namespace")
	for _, wave := range Waves() {
		pool = append(pool, wave.Kinds...)
	}
	for _, kind := range []string{"Deployment.apps", "StatefulSet.apps", "Job.batch", "Certificate.cert-manager.io"} {
		pool = append(pool, schema.ParseGroupKind(kind))
	}
	return rapid.Custom(func(t *rapid.T) []Phase {
		phases := make([]Phase, rapid.IntRange(0, 6).Draw(t, "phases"))
		for i := range phases {
			phases[i].Name = fmt.Sprint("phase-", i)
			for j := range rapid.IntRange(0, 12).Draw(t, "objects") {
				kind := rapid.SampledFrom(pool).Draw(t, "kind")
				phases[i].Steps = append(phases[i].Steps, Step{
					Ref: manifest.Ref{
						ID:      manifest.ID{Group: kind.Group, Kind: kind.Kind, Name: fmt.Sprintf("o-%d-%d", i, j)},
						Version: "v1", Digest: manifest.Digest(fmt.Sprint(i, j)),
					},
					Policy: Policy{Adopt: rapid.SampledFrom([]Adoption{AdoptNever, AdoptUncontrolled, AdoptAlways}).Draw(t, "adopt")},
				})
			}
		}
		return phases
	})
}

func TestProperties(t *testing.T) {
	order := newOrder(Waves())
	probes := probe.Builtin()
	rapid.Check(t, func(t *rapid.T) {
		phases := revisions().Draw(t, "revision")
		before := copyOf(phases)
		stages, err := Compile(phases, Options{Probes: probes})
		if err != nil {
			t.Fatalf("compiling: %v", err)
		}
		if diff := cmp.Diff(before, phases); diff != "" {
			t.Errorf("the phases were changed:\n%s", diff)
		}

		// No step is lost, duplicated or changed, and phases keep their order. In each phase, the
		// steps of its stages are the phase's steps, stably sorted by wave.
		rest := stages
		for _, phase := range phases {
			want := slices.Clone(phase.Steps)
			slices.SortStableFunc(want, func(a, b Step) int { return order.waveOf(a.GroupKind()) - order.waveOf(b.GroupKind()) })
			var got []Step
			last := -1
			for wave := 0; len(rest) > 0 && rest[0].Phase == phase.Name; wave++ {
				stage := rest[0]
				rest = rest[1:]
				if stage.Wave != wave || len(stage.Steps) == 0 {
					t.Errorf("stage %s/%d with %d steps where wave %d was to come", stage.Phase, stage.Wave, len(stage.Steps), wave)
				}
				row := order.waveOf(stage.Steps[0].GroupKind())
				if row <= last {
					t.Errorf("wave %s behind wave %s in %s", Waves()[row].Name, Waves()[last].Name, phase.Name)
				}
				last = row
				for _, step := range stage.Steps {
					if order.waveOf(step.GroupKind()) != row {
						t.Errorf("%s is in the wave of %s", step.ID, stage.Steps[0].ID)
					}
				}
				got = append(got, stage.Steps...)
			}
			if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
				t.Errorf("steps of %s (-want +got):\n%s", phase.Name, diff)
			}
		}
		if len(rest) > 0 {
			t.Errorf("%d stages of no phase, or in the wrong place, from %s", len(rest), rest[0].Phase)
		}
	})
}

func TestGatesOfAnyRevision(t *testing.T) {
	probes := probe.Builtin()
	rapid.Check(t, func(t *rapid.T) {
		phases := revisions().Draw(t, "revision")
		stages, err := Compile(phases, Options{Probes: probes})
		if err != nil {
			t.Fatalf("compiling: %v", err)
		}
		again, err := Compile(copyOf(phases), Options{Probes: probes})
		if err != nil {
			t.Fatalf("compiling again: %v", err)
		}
		if diff := cmp.Diff(lines(stages), lines(again)); diff != "" {
			t.Errorf("the same phases made other stages:\n%s", diff)
		}
		for i, stage := range stages {
			var want, got []manifest.ID
			for _, step := range stage.Steps {
				if probes.For(step.GroupKind()) != nil {
					want = append(want, step.ID)
				}
			}
			for _, gate := range stage.Gates {
				got = append(got, gate.ID)
				if gate.Probe != probes.For(gate.ID.GroupKind()) {
					t.Errorf("gate of %s has another kind's probe", gate.ID)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("gates of stage %d (-want +got):\n%s", i, diff)
			}
		}
	})
}

func copyOf(phases []Phase) []Phase {
	out := slices.Clone(phases)
	for i := range out {
		out[i].Steps = slices.Clone(out[i].Steps)
	}
	return out
}
