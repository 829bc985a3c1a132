package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(r Report) []string {
	var out []string
	for _, layer := range r.Layers {
		out = append(out, fmt.Sprintf("revision %d complete=%t", layer.Revision, layer.Complete))
		for _, p := range layer.Phases {
			line := fmt.Sprintf("%s reached=%t objects=%d applied=%d available=%d superseded=%d", p.Name, p.Reached, p.Objects, p.Applied, p.Available, p.Superseded)
			for _, f := range p.Failures {
				line += fmt.Sprintf(" [%s %s]", f.Name, f.Reason)
			}
			out = append(out, line)
		}
	}
	return out
}

// TestReport: the reports of one chain from its first rollout to its deletion.
func TestReport(t *testing.T) {
	s := newSaga()
	one := s.revision(1).phase("config", "Namespace a=1", "ConfigMap a/x=1").phase("deploy", "Deployment.apps a/y=1").phase("last", "ConfigMap a/z=1")
	two := s.revision(2).phase("config", "Namespace a=1", "ConfigMap a/x=2").phase("deploy", "Deployment.apps a/y=1", "Deployment.apps a/w=1")
	check := func(moment string, want ...string) {
		t.Helper()
		report, err := s.pass()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, lines(report)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", moment, diff)
		}
	}
	s.become(one)
	check("the workload is not ready",
		"revision 1 complete=false",
		"config reached=true objects=2 applied=2 available=2 superseded=0",
		"deploy reached=true objects=1 applied=1 available=0 superseded=0 [y ProbeFailed]",
		"last reached=false objects=1 applied=0 available=0 superseded=0")
	s.controllers()
	check("all is well",
		"revision 1 complete=true",
		"config reached=true objects=2 applied=2 available=2 superseded=0",
		"deploy reached=true objects=1 applied=1 available=1 superseded=0",
		"last reached=true objects=1 applied=1 available=1 superseded=0")
	s.become(two, one)
	check("two revisions are active",
		"revision 2 complete=false",
		"config reached=true objects=2 applied=2 available=2 superseded=0",
		"deploy reached=true objects=2 applied=2 available=1 superseded=0 [w ProbeFailed]",
		"revision 1 complete=true",
		// Objects that the newer layer took over during this pass count as superseded.
		"config reached=true objects=2 applied=0 available=0 superseded=2",
		"deploy reached=true objects=1 applied=0 available=0 superseded=1",
		"last reached=true objects=1 applied=1 available=1 superseded=0")
	s.place(refOf("ConfigMap a/q"), map[string]string{"value": "theirs"})
	three := s.revision(3).phase("config", "Namespace a=1", "ConfigMap a/x=3").phase("more", "ConfigMap a/q=1", "ConfigMap a/r=1")
	s.become(three, two)
	s.controllers()
	check("a phase that cannot start reports why",
		"revision 3 complete=false",
		"config reached=true objects=2 applied=2 available=2 superseded=0",
		"more reached=false objects=2 applied=0 available=0 superseded=0 [q Collision]",
		"revision 2 complete=true",
		"config reached=true objects=2 applied=0 available=0 superseded=2",
		"deploy reached=true objects=2 applied=2 available=2 superseded=0")
	four := s.revision(4).phase("config", "Namespace a=1", "ConfigMap a/q=1")
	four.paused = true
	s.become(four, three, two)
	check("a paused revision above it takes nothing of that back, and does not want to start it itself",
		"revision 4 complete=false",
		"config reached=false objects=2 applied=0 available=0 superseded=0",
		"revision 3 complete=false",
		"config reached=true objects=2 applied=2 available=2 superseded=0",
		"more reached=false objects=2 applied=0 available=0 superseded=0 [q Collision]",
		"revision 2 complete=true",
		"config reached=true objects=2 applied=0 available=0 superseded=2",
		"deploy reached=true objects=2 applied=2 available=2 superseded=0")
}

// TestEventsSayWhatWasChanged: events name the changed fields and no others.
func TestEventsSayWhatWasChanged(t *testing.T) {
	x := "ConfigMap a/x"
	cases := map[string]struct {
		reason string
		do     func(*saga)
		want   []string
	}{
		"nothing": {"no news is no event", func(*saga) {}, nil},
		"changed": {"who, and which field; not the value",
			func(s *saga) {
				s.alter(refOf(x).ID, func(o *thing) { o.set("data:value", "hunter2", "kubectl-edit") })
			},
			[]string{"Warning Repaired repaired ConfigMap a/x: .data.value was changed by kubectl-edit"}},
		"removed": {"a value is gone",
			func(s *saga) { s.alter(refOf(x).ID, func(o *thing) { delete(o.fields, "data:value") }) },
			[]string{"Warning Repaired repaired ConfigMap a/x: .data.value was removed"}},
		"deleted": {"someone deleted it", func(s *saga) { s.erase(refOf(x).ID) },
			[]string{"Normal Recreated created ConfigMap a/x again, which someone had deleted"}},
		"added": {"what others add is theirs",
			func(s *saga) {
				s.alter(refOf(x).ID, func(o *thing) { o.set("annotations:a", "b", "somebody") })
			}, nil},
		"label stripped": {"the label is a value of ours",
			func(s *saga) {
				s.alter(refOf(x).ID, func(o *thing) { delete(o.fields, "labels:"+testNames().ChainLabel) })
			},
			[]string{"Warning Repaired repaired ConfigMap a/x: .metadata.labels was removed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.roll(t, s.revision(1).phase("a", x+"=1"))
			tc.do(s)
			var got []string
			for range 2 {
				report, err := s.pass()
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range report.Events {
					kind := "Normal"
					if e.Warning {
						kind = "Warning"
					}
					got = append(got, strings.Join([]string{kind, e.Reason, e.Message}, " "))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if s.content(x) != "1" {
				t.Errorf("the object says %q", s.content(x))
			}
		})
	}
}
