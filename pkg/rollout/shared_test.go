package rollout

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// sharing makes the only object of revision 1 a shared object.
func (s *saga) sharing(t testing.TB, expect string, readOnly bool) {
	t.Helper()
	layer := s.revision(1).phase("configure", "Deployment.apps a/x=2").layer()
	step := &layer.Stages[0].Steps[0]
	step.Policy = stage.Policy{Own: stage.Shared, Expect: expect, ReadOnly: readOnly}
	layer.Stages[0].Gates = nil
	s.layers = []Layer{layer}
	s.engine.Names.ChainLabel = "" // the object keeps its owner
}

func (s *saga) state(t testing.TB) string {
	t.Helper()
	live, err := s.Read(t.Context(), refOf("Deployment.apps a/x"))
	if err != nil {
		return FingerprintAbsent
	}
	s.spent()
	return Fingerprint(live)
}

// foreign creates an object of another owner and returns its fingerprint.
func (s *saga) foreign(t testing.TB) string {
	t.Helper()
	s.place(refOf("Deployment.apps a/x"), map[string]string{"value": "1", "other": "theirs"})
	return s.state(t)
}

func (s *saga) change(key, value string) {
	s.alter(refOf("Deployment.apps a/x").ID, func(o *thing) { o.set("data:"+key, value, "mallory") })
}

func TestShare(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		// before returns the expected fingerprint, and may change the object.
		before   func(t testing.TB, s *saga) string
		readOnly bool
		content  string
		failures []string
	}{
		"someone else's": {
			"only the fields of the manifest are set", func(t testing.TB, s *saga) string { return s.foreign(t) }, false, "2", nil},
		"absent": {
			"what was reviewed as absent is created", func(testing.TB, *saga) string { return FingerprintAbsent }, false, "2", nil},
		"changed since": {
			"what was reviewed is what is written onto", func(t testing.TB, s *saga) string {
				defer s.change("value", "7")
				return s.foreign(t)
			}, false, "7", []string{"1/configure Deployment.apps a/x Stale"}},
		"deleted since": {
			"it is not made again unasked", func(t testing.TB, s *saga) string {
				defer s.erase(refOf("Deployment.apps a/x").ID)
				return s.foreign(t)
			}, false, "absent", []string{"1/configure Deployment.apps a/x Stale"}},
		"made since": {
			"it may be anything", func(t testing.TB, s *saga) string {
				s.foreign(t)
				return FingerprintAbsent
			}, false, "1", []string{"1/configure Deployment.apps a/x Stale"}},
		"compared": {
			"a difference is told and left", func(t testing.TB, s *saga) string { return s.foreign(t) }, true, "1",
			[]string{"1/configure Deployment.apps a/x Drifted"}},
		"compared, equal": {
			"what others made right needs nothing", func(t testing.TB, s *saga) string {
				s.foreign(t)
				s.change("value", "2")
				return ""
			}, true, "2", nil},
		"compared, absent": {
			"nothing is created", func(testing.TB, *saga) string { return "" }, true, "absent",
			[]string{"1/configure Deployment.apps a/x Drifted"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.sharing(t, c.before(t, s), c.readOnly)
			report := s.settle(t)
			if diff := cmp.Diff(c.failures, failures(report)); diff != "" {
				t.Errorf("%s: failures (-want +got):\n%s", c.reason, diff)
			}
			if got := s.content("Deployment.apps a/x"); got != c.content {
				t.Errorf("%s: the object has %q, want %q", c.reason, got, c.content)
			}
			if len(s.deleted) > 0 {
				t.Errorf("%s: deleted %v", c.reason, s.deleted)
			}
			if o := s.objects[refOf("Deployment.apps a/x").ID]; o != nil && !c.readOnly && name != "absent" && o.fields["data:other"].value != "theirs" {
				t.Errorf("%s: a field of somebody else is gone", c.reason)
			}
		})
	}
}

// TestShareThenDrift: a shared object is written once, and later changes by other writers are
// reported.
func TestShareThenDrift(t *testing.T) {
	s := newSaga()
	s.sharing(t, s.foreign(t), false)
	s.settle(t)
	s.change("other", "changed")
	if report := s.settle(t); len(failures(report)) > 0 {
		t.Errorf("a field that is not ours: %v", failures(report))
	}
	s.change("value", "9")
	want := []string{"1/configure Deployment.apps a/x Drifted"}
	if diff := cmp.Diff(want, failures(s.driftSettled(t))); diff != "" {
		t.Errorf("a field of ours (-want +got):\n%s", diff)
	}
	if got := s.content("Deployment.apps a/x"); got != "9" {
		t.Errorf("the object has %q: what others changed is not undone", got)
	}
	s.change("value", "2")
	if report := s.settle(t); len(failures(report)) > 0 {
		t.Errorf("changed back: %v", failures(report))
	}
}

// driftSettled settles a chain with drift, which is read again in each pass.
func (s *saga) driftSettled(t testing.TB) Report {
	t.Helper()
	s.deliver(len(s.changes))
	report, err := s.pass()
	if err != nil {
		t.Fatal(err)
	}
	if writes, _ := s.spent(); len(writes) > 0 {
		t.Errorf("writes: %v", writes)
	}
	return report
}

// TestShareCrash: a crash at any write, followed by a restart, has the same effect as no crash.
func TestShareCrash(t *testing.T) {
	for _, lands := range []bool{false, true} {
		for fuse := range 6 {
			s := newSaga()
			s.sharing(t, s.foreign(t), false)
			s.fuse, s.lastWriteLands = fuse, lands
			for range 5 {
				s.deliver(len(s.changes))
				if _, err := s.pass(); errors.Is(err, errCrash) || s.dead {
					break
				}
			}
			// A plan keeps nothing but its own status after a crash.
			s.stored = Inventory{}
			s.restart()
			s.engine.Names.ChainLabel = ""
			if report := s.settle(t); len(failures(report)) > 0 {
				t.Errorf("dead after %d writes (landed: %t): %s", fuse, lands, strings.Join(failures(report), "; "))
			}
			if got := s.content("Deployment.apps a/x"); got != "2" {
				t.Errorf("dead after %d writes (landed: %t): the object has %q", fuse, lands, got)
			}
		}
	}
}

// TestShareDelete: a shared object is deleted only in its reviewed state.
func TestShareDelete(t *testing.T) {
	for name, c := range map[string]struct {
		changed  bool
		content  string
		failures []string
	}{
		"as reviewed": {false, "absent", nil},
		"changed":     {true, "7", []string{"1/configure Deployment.apps a/x Stale"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.sharing(t, s.foreign(t), false)
			s.layers[0].Stages[0].Steps[0].Policy.Delete = true
			if c.changed {
				s.change("value", "7")
			}
			report := s.settle(t)
			if diff := cmp.Diff(c.failures, failures(report)); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			if got := s.content("Deployment.apps a/x"); got != c.content {
				t.Errorf("the object has %q, want %q", got, c.content)
			}
			if !c.changed && !report.Layers[0].Complete {
				t.Error("the layer is not complete although the object is gone")
			}
		})
	}
}
