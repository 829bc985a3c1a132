package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func repairsOf(i Inventory) []string {
	var lines []string
	for _, r := range i.Repairs {
		lines = append(lines, fmt.Sprintf("%d %s by %q ×%d %s–%s: %s", r.Revision, r.ID, r.Manager, r.Count, r.First.Format("15:04:05"), r.Last.Format("15:04:05"), r.Lost))
	}
	return lines
}

// TestRepairsAreRecorded: the inventory records the changed fields and their managers, without an
// additional write. A new process reads the record.
func TestRepairsAreRecorded(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("config", "ConfigMap a/x=1", "ConfigMap a/y=1"))
	began := s.clock.Now()
	at := func(after time.Duration) string { return began.Add(after).Format("15:04:05") }
	repairs := func(after time.Duration, change func()) (saves int) {
		t.Helper()
		s.clock.SetTime(began.Add(after))
		change()
		s.deliver(len(s.changes))
		s.spent()
		s.mustPass(t)
		writes, _ := s.spent()
		s.deliver(len(s.changes))
		return len(slices.DeleteFunc(writes, func(line string) bool { return !strings.HasPrefix(line, "save") }))
	}
	set := func(object, value, manager string) func() {
		return func() {
			s.alter(refOf(object).ID, func(o *thing) { o.set("data:value", value, manager) })
		}
	}
	for n, saves := range []int{
		repairs(time.Minute, set("ConfigMap a/x", "mine", "mallory")),
		repairs(time.Hour, set("ConfigMap a/y", "mine", "kubectl-edit")),
		repairs(2*time.Hour, set("ConfigMap a/x", "again", "mallory")),
		repairs(3*time.Hour, func() { s.erase(refOf("ConfigMap a/y").ID) }),
	} {
		if saves != 1 {
			t.Errorf("repair %d saved the inventory %d times", n, saves)
		}
	}
	if saves := repairs(4*time.Hour, func() {}); saves != 0 {
		t.Errorf("without a change the inventory was saved %d times", saves)
	}
	want := []string{
		fmt.Sprintf(`1 ConfigMap a/y by "kubectl-edit" ×1 %s–%[1]s: .data.value was changed by kubectl-edit`, at(time.Hour)),
		fmt.Sprintf(`1 ConfigMap a/x by "mallory" ×2 %s–%s: .data.value was changed by mallory`, at(time.Minute), at(2*time.Hour)),
		fmt.Sprintf(`1 ConfigMap a/y by "" ×1 %s–%[1]s: someone had deleted it`, at(3*time.Hour)),
	}
	s.restart()
	s.settle(t)
	if got := repairsOf(s.stored); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRepairsAreBounded: a series of equal repairs is one record, and the oldest of too many
// records is dropped.
func TestRepairsAreBounded(t *testing.T) {
	l := ledger{}
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	one := RepairRecord{ID: refOf("ConfigMap a/x").ID, Manager: "mallory", Lost: ".data.value was changed by mallory"}
	for range 1000 {
		now = now.Add(time.Minute)
		l.repaired(one, now)
	}
	if len(l.inventory.Repairs) != 1 || l.inventory.Repairs[0].Count != 1000 || !l.inventory.Repairs[0].Last.Equal(now) {
		t.Errorf("a fight of 1000 repairs is %v", repairsOf(l.inventory))
	}
	for n := range 1000 {
		other := one
		other.Lost = fmt.Sprintf("%d %s", n, strings.Repeat("é", 1000))
		l.repaired(other, now)
	}
	if len(l.inventory.Repairs) != maxRepairs || !strings.HasPrefix(l.inventory.Repairs[maxRepairs-1].Lost, "999 ") {
		t.Errorf("of 1000 changes the last of %d records is %q", len(l.inventory.Repairs), l.inventory.Repairs[len(l.inventory.Repairs)-1].Lost)
	}
	for _, r := range l.inventory.Repairs {
		if len(r.Lost) > maxLostBytes {
			t.Fatalf("a record says %d bytes", len(r.Lost))
		}
	}
}
