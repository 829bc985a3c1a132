package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/budget"
)

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

func budgeted() *saga {
	s := newSaga()
	s.limited()
	return s
}

func (s *saga) limited() {
	s.budget = &Budget{Acknowledged: map[string]bool{}, Listed: func(revision int64) ([]manifest.ID, bool) {
		listed, known := s.listed[revision]
		return listed, known
	}}
}

// answer acknowledges the deletions that the last pass asked for, and reports whether it asked.
func (s *saga) answer() bool {
	asks := s.last.Acknowledge != "" && !s.budget.Acknowledged[s.last.Acknowledge]
	if asks {
		s.budget.Acknowledged[s.last.Acknowledge], s.news = true, true
	}
	return asks
}

func (s *saga) left() int { return len(s.objects) }

// TestFreeze: the engine does not roll out, repair or prune a frozen chain. The report names the
// pending writes.
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

// TestBudget: deletions beyond the budget happen only after a deletion of the revision or an
// acknowledgement, and then all at once.
func TestBudget(t *testing.T) {
	const n = budget.Objects + 5
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
		s.erase(refOf("ConfigMap a/m00").ID) // so that another writer can create it
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
		all := many(60)
		s.roll(t, s.revision(1).phase("base", all...))
		s.roll(t, s.revision(2).phase("base", all[15:]...))
		if s.left() != 45 {
			t.Fatalf("%d objects are left, want 45", s.left())
		}
		s.restart()
		s.become(s.revision(3).phase("base", all[25:]...))
		report := s.settle(t)
		if len(report.Leaving) != 10 || report.RequeueAfter <= 0 || report.RequeueAfter > budget.Window {
			t.Fatalf("15 and 10 within the window are too many of 45: %v, again in %s", failures(report), report.RequeueAfter)
		}
		s.clock.SetTime(s.clock.Now().Add(report.RequeueAfter))
		s.settle(t)
		if s.left() != 35 {
			t.Errorf("%d objects are left when the window is over", s.left())
		}
	})
	t.Run("crash", func(t *testing.T) {
		all := many(3 * budget.Objects)
		for fuse := range 2 * budget.Objects {
			s := budgeted()
			s.roll(t, s.revision(1).phase("base", all...))
			s.become(s.revision(2).phase("base", all[budget.Objects:]...))
			s.fuse, s.lastWriteLands = fuse, true
			if _, err := s.pass(); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			s.restart()
			s.settle(t)
			if _, spent := s.stored.recent(s.clock.Now()); s.left() != 2*budget.Objects || spent != budget.Objects {
				t.Errorf("behind write %d: %d objects are left, and %d are charged", fuse, s.left(), spent)
			}
		}
	})
	t.Run("wanted again", func(t *testing.T) {
		s := budgeted()
		s.roll(t, s.revision(1).phase("base", many(4)...))
		s.alter(refOf("ConfigMap a/m00").ID, func(o *thing) { o.finalizers = []string{"example.com/hold"} })
		s.become(s.revision(2).phase("base", many(4)[1:]...))
		s.settle(t)
		if !s.stored.Entries[refOf("ConfigMap a/m00").ID].Doomed {
			t.Fatal("it was not charged")
		}
		s.erase(refOf("ConfigMap a/m00").ID)
		s.roll(t, s.revision(3).phase("base", many(4)...))
		if slices.ContainsFunc(sortedIDs(s.stored.Entries), func(id manifest.ID) bool { return s.stored.Entries[id].Doomed }) {
			t.Error("what is wanted again may still go")
		}
	})
	t.Run("replaced", func(t *testing.T) {
		s := budgeted()
		for version := int64(1); version <= 10; version++ {
			var names []string
			for i := range 30 {
				names = append(names, fmt.Sprintf("ClusterRole.rbac v%d-%02d=1", version, i))
			}
			last := s.roll(t, s.revision(version).phase("rights", names...).phase("base", many(30)...))
			if len(last.Leaving) > 0 || len(s.stored.Deletions) > 0 || s.left() != 60 {
				t.Fatalf("version %d: %d objects are left, charged are %v: %v", version, s.left(), s.stored.Deletions, failures(last))
			}
		}
		s.roll(t, s.revision(11))
		if s.left() != 60 || s.last.Acknowledge == "" {
			t.Fatalf("emptied: %d objects are left, and it asks for %q", s.left(), s.last.Acknowledge)
		}
		emptied := s.last.Acknowledge
		s.roll(t, s.revision(12).phase("base", many(30)...))
		s.roll(t, s.revision(13))
		if s.last.Acknowledge == emptied {
			t.Error("an answer for the first set would be one for a later")
		}
	})
	t.Run("some of it", func(t *testing.T) {
		s := budgeted()
		s.roll(t, s.revision(1).phase("base", "Namespace a=1", "ConfigMap a/x=1", "ConfigMap a/y=1", "ConfigMap a/z=1", "ConfigMap a/u=1", "ConfigMap a/v=1"))
		s.roll(t, s.revision(2).phase("base", "ConfigMap a/y=1", "ConfigMap a/z=1", "ConfigMap a/u=1", "ConfigMap a/v=1"))
		if got := failures(s.last); len(got) != 1 || !strings.Contains(got[0], "Namespace") || s.content("ConfigMap a/x") != "absent" {
			t.Fatalf("only the Namespace is asked for: %v", got)
		}
		if !s.answer() {
			t.Fatal("it does not ask")
		}
		if s.settle(t); s.content("Namespace a") != "absent" {
			t.Error("it was acknowledged")
		}
	})
	t.Run("undone", func(t *testing.T) {
		s := budgeted()
		one := []string{"ConfigMap a/x=1"}
		s.roll(t, s.revision(1).phase("base", one...))
		s.roll(t, s.revision(2).phase("base", "ConfigMap a/x=1", "Deployment.apps a/d=1", "ConfigMap a/y=1", "ConfigMap a/z=1", "PersistentVolumeClaim a/data=1"), s.revision(1).phase("base", one...))
		s.budget.Undone = func(id manifest.ID, revision int64) bool { return revision == 2 && id.Name != "x" }
		s.roll(t, s.revision(3).phase("base", one...))
		if got := failures(s.last); len(got) != 1 || !strings.Contains(got[0], "PersistentVolumeClaim") || s.content("Deployment.apps a/d") != "absent" {
			t.Fatalf("what an upgrade added that never succeeded goes, but for data: %v", got)
		}
	})
	t.Run("reviewed", func(t *testing.T) {
		s := budgeted()
		s.roll(t, s.revision(1).phase("base", "Namespace a=1", "Namespace b=1", "ConfigMap a/x=1"))
		s.budget.Reviewed = func(id manifest.ID, revision int64) bool { return id.Name == "a" && revision < 2 }
		s.roll(t, s.revision(2).phase("base", "ConfigMap a/x=1"))
		if got := failures(s.last); len(got) != 1 || s.content("Namespace a") != "absent" || s.content("Namespace b") == "absent" {
			t.Fatalf("one was named, and the other one was not: %v", got)
		}
	})
}

// TestBudgetOfManyObjects: for a large inventory, the budget is a share of its objects.
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
	if recent, _ := s.stored.recent(s.clock.Now().Add(budget.Window)); len(recent) > 0 {
		t.Errorf("these count for ever: %v", recent)
	}
}
