package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// many are n ConfigMaps.
func many(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("ConfigMap a/m%02d=1", i))
	}
	return out
}

func (s *saga) mustPass(t *testing.T) Report {
	t.Helper()
	report, err := s.pass()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// budgeted is a chain with a deletion budget.
func budgeted() *saga {
	s := newSaga()
	s.budget = &Budget{}
	return s
}

// left counts the objects in the cluster.
func (s *saga) left() int { return len(s.objects) }

// TestFreeze: nothing is rolled out, repaired or removed, and what would be is said.
func TestFreeze(t *testing.T) {
	s := newSaga()
	one := s.revision(1).phase("base", "ConfigMap a/x=1", "ConfigMap a/old=1")
	s.roll(t, one)
	s.spent()
	s.freeze = &Freeze{Author: "alice", Reason: "the year ends"}
	s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { o.set("data:value", "9", "somebody") })
	report := s.mustPass(t)
	if got := failures(report); len(got) != 1 || !strings.Contains(got[0], ReasonFrozen) {
		t.Errorf("drift is reported as %v", got)
	}
	if text := report.Layers[0].Phases[0].Failures[0].Message; !strings.Contains(text, "frozen by alice: the year ends") {
		t.Errorf("the message does not say who and why: %s", text)
	}
	s.become(s.revision(2).phase("base", "ConfigMap a/x=2").phase("more", "ConfigMap a/y=2"))
	report = s.mustPass(t)
	if len(report.Leaving) != 1 || report.Leaving[0].Reason != ReasonFrozen {
		t.Errorf("leaving are %v", report.Leaving)
	}
	s.become()
	if report = s.mustPass(t); len(report.Leaving) != 2 {
		t.Errorf("leaving are %v", report.Leaving)
	}
	if writes, reads := s.spent(); len(writes)+len(reads) > 0 {
		t.Errorf("requests were made: %v %v", writes, reads)
	}
	s.freeze = nil
	s.settle(t)
	if s.left() > 0 {
		t.Errorf("%d objects are left", s.left())
	}
}

// TestBudget: more than the budget goes only when it is deleted or acknowledged, and
// only as a whole.
func TestBudget(t *testing.T) {
	const n = budgetObjects + 5
	setup := func(t *testing.T) *saga {
		s := budgeted()
		s.roll(t, s.revision(1).phase("base", many(n)...).phase("last", "ConfigMap a/keep=1"))
		s.become(s.revision(2).phase("last", "ConfigMap a/keep=2"))
		return s
	}
	asks := func(t *testing.T, s *saga) string {
		t.Helper()
		report := s.mustPass(t)
		if len(report.Leaving) != n || report.Leaving[0].Reason != ReasonBudget || !report.Leaving[0].NeedsPerson || report.Acknowledge == "" {
			t.Fatalf("it does not ask: %q %v", report.Acknowledge, report.Leaving)
		}
		if !strings.Contains(report.Leaving[0].Message, fmt.Sprintf("one of %d objects", n)) || !strings.Contains(report.Leaving[0].Message, report.Acknowledge) {
			t.Errorf("the message is %s", report.Leaving[0].Message)
		}
		if s.left() != n+1 {
			t.Errorf("%d objects are left, want %d", s.left(), n+1)
		}
		return report.Acknowledge
	}
	t.Run("asks", func(t *testing.T) {
		s := setup(t)
		token := asks(t, s)
		if got := s.content("ConfigMap a/keep"); got != "2" {
			t.Errorf("the rollout itself goes on, and did not: %s", got)
		}
		s.budget.Acknowledged = map[string]bool{"25": true, "25-0000000000": true}
		s.restart()
		if again := asks(t, s); again != token {
			t.Errorf("the same objects are %s and %s", token, again)
		}
		s.budget.Acknowledged = map[string]bool{token: true}
		s.settle(t)
		if s.left() != 1 || len(s.stored.Deletions) > 0 {
			t.Errorf("%d objects are left; an answer does not charge the budget: %v", s.left(), s.stored.Deletions)
		}
	})
	t.Run("the answer is for these objects", func(t *testing.T) {
		s := setup(t)
		s.budget.Acknowledged = map[string]bool{asks(t, s): true}
		s.erase(refOf("ConfigMap a/m00").ID) // and so somebody makes another one
		s.become(s.revision(3).phase("base", many(n)...).phase("last", "ConfigMap a/keep=2"))
		s.settle(t)
		s.become(s.revision(4).phase("last", "ConfigMap a/keep=2"))
		asks(t, s)
	})
	t.Run("deleted by somebody", func(t *testing.T) {
		s := setup(t)
		s.budget.Explicit = map[int64]bool{1: true}
		s.settle(t)
		if s.left() != 1 {
			t.Errorf("%d objects are left", s.left())
		}
	})
	t.Run("within a window", func(t *testing.T) {
		s := budgeted()
		all := many(2 * (budgetObjects - 5))
		half := all[:len(all)/2]
		s.roll(t, s.revision(1).phase("base", all...))
		s.roll(t, s.revision(2).phase("base", half...))
		if s.left() != len(half) {
			t.Fatalf("%d objects are left, want %d", s.left(), len(half))
		}
		s.restart()
		s.become()
		report := s.mustPass(t)
		if len(report.Leaving) != len(half) || report.RequeueAfter <= 0 || report.RequeueAfter > budgetWindow {
			t.Fatalf("both halves within the window are too many: %v, again in %s", failures(report), report.RequeueAfter)
		}
		s.clock.SetTime(s.clock.Now().Add(report.RequeueAfter))
		s.settle(t)
		if s.left() != 0 {
			t.Errorf("%d objects are left when the window is over", s.left())
		}
	})
	t.Run("crash", func(t *testing.T) {
		for fuse := range 2 * budgetObjects {
			s := budgeted()
			s.roll(t, s.revision(1).phase("base", many(budgetObjects)...))
			s.become()
			s.fuse, s.lastWriteLands = fuse, true
			if _, err := s.pass(); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			s.restart()
			s.settle(t)
			if _, spent := s.stored.recent(s.clock.Now()); s.left() > 0 || spent != budgetObjects {
				t.Errorf("behind write %d: %d objects are left, and %d are charged", fuse, s.left(), spent)
			}
		}
	})
	t.Run("wanted again", func(t *testing.T) {
		s := budgeted()
		s.roll(t, s.revision(1).phase("base", many(2)...))
		s.alter(refOf("ConfigMap a/m00").ID, func(o *thing) { o.finalizers = []string{"example.com/hold"} })
		s.become()
		s.mustPass(t)
		if !s.stored.Entries[refOf("ConfigMap a/m00").ID].Doomed {
			t.Fatal("it was not charged")
		}
		s.erase(refOf("ConfigMap a/m00").ID)
		s.roll(t, s.revision(2).phase("base", many(2)...))
		if slices.ContainsFunc(sortedIDs(s.stored.Entries), func(id manifest.ID) bool { return s.stored.Entries[id].Doomed }) {
			t.Error("what is wanted again may still go")
		}
	})
}

// TestBudgetOfManyObjects: of a large inventory, a share is more than a number.
func TestBudgetOfManyObjects(t *testing.T) {
	s := budgeted()
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprintf("ConfigMap a/m%03d=1", i))
	}
	s.roll(t, s.revision(1).phase("base", all...))
	s.roll(t, s.revision(2).phase("base", all[30:]...))
	if s.left() != 270 || len(s.stored.Deletions) != 1 || s.stored.Deletions[0].Objects != 30 {
		t.Errorf("%d objects are left, charged are %v; a tenth may go", s.left(), s.stored.Deletions)
	}
	if recent, _ := s.stored.recent(s.clock.Now().Add(budgetWindow)); len(recent) > 0 {
		t.Errorf("these count for ever: %v", recent)
	}
}
