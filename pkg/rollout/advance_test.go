package rollout

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stagesOfOnePhase makes the phases of a revision the stages of a single phase.
func stagesOfOnePhase(layer *Layer) {
	for i := range layer.Stages {
		layer.Stages[i].Phase = layer.Stages[0].Phase
	}
}

// TestEarlyStages: an early stage waits until earlier objects exist, and not for their gates. Later
// stages and other phases wait for the gates.
func TestEarlyStages(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Layer)
		want   []string
	}{
		"Early":        {"it does not wait", func(l *Layer) { stagesOfOnePhase(l); l.Stages[1].Early = true }, []string{"ConfigMap a/early", server}},
		"Not early":    {"it waits", stagesOfOnePhase, []string{server}},
		"Other phases": {"phases wait for each other", func(l *Layer) { l.Stages[1].Early = true }, []string{server}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.become(s.revision(1).phase("all", server+"=1").phase("early", "ConfigMap a/early=1").phase("late", "ConfigMap a/late=1"))
			tc.change(&s.layers[0])
			report := s.step(t)
			if diff := cmp.Diff(tc.want, existing(s)); diff != "" {
				t.Errorf("while the workload is not ready %s (-want +got):\n%s", tc.reason, diff)
			}
			if report.Layers[0].Complete {
				t.Error("the revision is complete although a gate is closed")
			}
			if report := s.settle(t); !report.Layers[0].Complete || len(existing(s)) != 3 {
				t.Errorf("in the end there is %v", existing(s))
			}
		})
	}
}

// TestSaves counts the saves of an inventory: one save before the writes of each stage, with the
// results of earlier stages, and one save at the end.
func TestSaves(t *testing.T) {
	saves := func(s *saga) int {
		writes, _ := s.spent()
		return len(slices.DeleteFunc(writes, func(line string) bool { return !strings.HasPrefix(line, "save") }))
	}
	s := newSaga()
	install := s.revision(1).phase("one", "ConfigMap a/x=1").phase("two", "ConfigMap a/y=1").phase("three", server+"=1")
	s.become(install)
	s.step(t)
	s.controllers()
	s.step(t)
	if got := saves(s); got != 4 {
		t.Errorf("an installation of three stages was stored %d times, want 4", got)
	}
	s.settle(t)
	s.spent()
	s.become(s.revision(2).phase("one", "ConfigMap a/x=1").phase("two", "ConfigMap a/y=2").phase("three", server+"=1"), install)
	s.step(t)
	if got := saves(s); got > 3 {
		t.Errorf("an upgrade that changes one object was stored %d times, want 3 at most", got)
	}
}
