package stage

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

func late(object string) Step {
	s := step(object)
	s.Level, s.Policy.CreateOnly = 1, true
	return s
}

func TestCompileLevels(t *testing.T) {
	first := phase("config", "ConfigMap a", "Namespace n")
	first.Steps = append(first.Steps, late("ConfigMap b"), late("Namespace m"))
	phases := []Phase{first, phase("deploy", "Deployment.apps d")}
	cases := map[string]struct {
		reason string
		levels bool
		want   []string
	}{
		"Install": {"for each level, for each phase, for each wave", true, []string{
			"0 config/0: Namespace n", "0 config/1: ConfigMap a", "0 deploy/0: Deployment.apps d", "1 config/0: Namespace m", "1 config/1: ConfigMap b",
		}},
		"Update": {"levels order nothing", false, []string{
			"0 config/0: Namespace n, Namespace m", "0 config/1: ConfigMap a, ConfigMap b", "0 deploy/0: Deployment.apps d",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stages, err := Compile(phases, Options{Probes: probe.Builtin(), Levels: tc.levels})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range stages {
				line := fmt.Sprintf("%d %s/%d:", s.Level, s.Phase, s.Wave)
				for i, step := range s.Steps {
					if i > 0 {
						line += ","
					}
					line += " " + step.ID.String()
				}
				got = append(got, line)
				for _, gate := range s.Gates {
					if gate.ID.Name == "m" {
						t.Error("a create-only object has a gate")
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLevelsAreTheSameStagesApart: levels that are compiled together equal levels that are compiled
// from their objects alone.
func TestLevelsAreTheSameStagesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phases := revisions().Draw(t, "revision")
		var alone [2][]Phase
		for p := range phases {
			for level := range alone {
				alone[level] = append(alone[level], Phase{Name: phases[p].Name})
			}
			for s := range phases[p].Steps {
				step := &phases[p].Steps[s]
				step.Level = rapid.IntRange(0, 1).Draw(t, "level")
				alone[step.Level][p].Steps = append(alone[step.Level][p].Steps, *step)
			}
		}
		got, err := Compile(phases, Options{Levels: true})
		if err != nil {
			t.Fatal(err)
		}
		var want []Stage
		for level := range alone {
			stages, err := Compile(alone[level], Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range stages {
				s.Level = level
				want = append(want, s)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
