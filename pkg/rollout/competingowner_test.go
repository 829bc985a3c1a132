package rollout

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// claimant is a competing owner that counts the questions.
type claimant struct {
	why   string
	err   error
	asked int
}

func (c *claimant) Claims(context.Context) (string, error) {
	c.asked++
	return c.why, c.err
}

// TestRival: while another program owns the objects, the engine neither creates, changes nor
// deletes them. It asks the competing owner only before a write.
func TestRival(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		do      func(*testing.T, *saga)
		failure string
	}{
		"changed": {
			do: func(_ *testing.T, s *saga) {
				s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { o.set("data:value", "9", "helm") })
			},
			failure: "1/config ConfigMap a/x Contested",
		},
		"deleted": {
			reason:  "it may be the competing owner who did it",
			do:      func(_ *testing.T, s *saga) { s.erase(refOf("ConfigMap a/x").ID) },
			failure: "1/config ConfigMap a/x Contested",
		},
		"upgrade": {
			do: func(_ *testing.T, s *saga) {
				s.become(s.revision(2).phase("config", "ConfigMap a/x=2"), s.revision(1).phase("config", "ConfigMap a/x=1"))
			},
			failure: "2/config ConfigMap a/x Contested",
		},
		"teardown": {
			do:      func(_ *testing.T, s *saga) { s.become() },
			failure: "leaving ConfigMap a/x Contested",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			who := &claimant{}
			s.competing = who
			s.roll(t, s.revision(1).phase("config", "ConfigMap a/x=1"))
			s.spent()
			before := who.asked
			if _, err := s.pass(); err != nil || who.asked != before {
				t.Errorf("a pass with nothing to do asks %d times (%v)", who.asked-before, err)
			}
			for _, said := range []*claimant{{why: "Helm has it"}, {err: errors.New("no answer")}} {
				*who = *said
				tc.do(t, s)
				s.deliver(len(s.changes))
				report, err := s.pass()
				if err != nil {
					t.Fatal(err)
				}
				writes, _ := s.spent()
				if writes = slices.DeleteFunc(writes, func(line string) bool { return line == "save  " }); len(writes) > 0 {
					t.Errorf("%s: it writes %v", tc.reason, writes)
				}
				if who.asked != 1 || report.RequeueAfter == 0 {
					t.Errorf("it asked %d times, and comes again after %s", who.asked, report.RequeueAfter)
				}
				if said.why != "" && !slices.Contains(failures(report), tc.failure) {
					t.Errorf("it reports %v, want %s", failures(report), tc.failure)
				}
			}
			*who = claimant{}
			s.settle(t)
			if name == "teardown" {
				return
			}
			want := "1"
			if name == "upgrade" {
				want = "2"
			}
			if got := s.content("ConfigMap a/x"); got != want {
				t.Errorf("when the competing owner is gone it says %q", got)
			}
		})
	}
}

// TestRivalLetsRelease: the engine still releases objects, so that the competing owner can keep
// them.
func TestRivalLetsRelease(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("config", "ConfigMap a/x=1"))
	s.competing, s.layers, s.orphan = &claimant{why: "Helm has it"}, nil, map[int64]bool{1: true}
	s.settle(t)
	if len(s.stored.Entries) != 0 || s.content("ConfigMap a/x") != "1" {
		t.Errorf("the inventory has %v, the object %q", s.stored.Entries, s.content("ConfigMap a/x"))
	}
}
