package rollout

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestContested: another client reverts an object after each repair. The engine waits longer before
// each repair, and repairs the object when the other client stops.
func TestContested(t *testing.T) {
	cases := map[string]struct {
		reason string
		fight  func(o *thing, round int)
		// writes and reads are the limits for one hour.
		writes, reads int
		reports       bool
	}{
		"a value of ours": {
			reason: "each repair waits longer than the one before",
			fight:  func(o *thing, _ int) { o.set("data:value", "mine", "fighter") },
			writes: 5 + 40, reads: 5 + 40, reports: true,
		},
		"values of others": {
			reason: "a leader election on our object is looked at now and then",
			fight:  func(o *thing, round int) { o.set("annotations:leader", fmt.Sprint(round), "elector") },
			writes: 0, reads: 5 + 40,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.roll(t, s.revision(1).phase("config", "ConfigMap a/x=1"))
			s.spent()
			var writes, reads int
			reported := false
			for round := range 3600 {
				s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { tc.fight(o, round) })
				report, err := s.pass()
				if err != nil {
					t.Fatal(err)
				}
				reported = reported || slices.Contains(failures(report), "1/config ConfigMap a/x Contested")
				if reported && tc.reports && report.RequeueAfter <= 0 && !report.Layers[0].Complete {
					t.Fatalf("nothing brings the next look: %v", failures(report))
				}
				w, r := s.spent()
				writes += len(slices.DeleteFunc(w, func(line string) bool { return line == "save  " }))
				reads += len(r)
				s.clock.SetTime(s.clock.Now().Add(time.Second))
			}
			if writes > tc.writes || reads > tc.reads {
				t.Errorf("%s: an hour cost %d writes and %d reads, want at most %d and %d", tc.reason, writes, reads, tc.writes, tc.reads)
			}
			if reported != tc.reports {
				t.Errorf("Contested was reported: %t, want %t", reported, tc.reports)
			}
			s.clock.SetTime(s.clock.Now().Add(time.Hour))
			if s.settle(t); s.content("ConfigMap a/x") != "1" {
				t.Errorf("after the contest the object says %q", s.content("ConfigMap a/x"))
			}
		})
	}
}
