package rollout

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/accepted"
)

// silence is an Admission that has a say in the objects that are listed.
type silence struct {
	loud map[manifest.ID]bool
	// prepared is how often it was told that it will be asked.
	prepared *atomic.Int32
}

func (s silence) Prepare() { s.prepared.Add(1) }

func (s silence) Silent(_ context.Context, id manifest.ID, _ accepted.Verdict) bool {
	return !s.loud[id]
}

// foreseeing is a saga whose engine knows what may refuse an update.
func foreseeing(loud ...string) *saga {
	s := newSaga()
	s.foresees(loud...)
	return s
}

func (s *saga) foresees(loud ...string) {
	admission := silence{map[manifest.ID]bool{}, &atomic.Int32{}}
	for _, object := range loud {
		admission.loud[refOf(object).ID] = true
	}
	s.engine.Admission = admission
}

// tries are the objects that were tried since requests were last asked for.
func (s *saga) tries() []string {
	_, reads := s.spent()
	var tried []string
	for _, read := range reads {
		if object, is := strings.CutPrefix(read, "try "); is {
			tried = append(tried, object)
		}
	}
	slices.Sort(tried)
	return tried
}

// TestCertain: which updates are tried.
func TestCertain(t *testing.T) {
	const x, y = "ConfigMap a/x", "ConfigMap a/y"
	for name, c := range map[string]struct {
		reason string
		// before is revision 1, and after revision 2; meddle is what happens in between.
		before, after []string
		meddle        func(*saga)
		want          []string
	}{
		"known":   {"what is known is written", []string{x + "=1", y + "=1"}, []string{x + "=2", y + "=2"}, func(*saga) {}, nil},
		"new":     {"what is new is tried", []string{x + "=1"}, []string{x + "=2", y + "=2"}, func(*saga) {}, []string{y}},
		"unknown": {"what the judge does not know is tried", []string{"Widget.example.com a/w=1"}, []string{"Widget.example.com a/w=2"}, func(*saga) {}, []string{"Widget.example.com a/w"}},
		"loud":    {"what somebody has a say in is tried", []string{x + "=1", y + "=1"}, []string{x + "=2", y + "=2"}, func(s *saga) { s.foresees(y) }, []string{y}},
		"off":     {"without an Admission all is tried", []string{x + "=1"}, []string{x + "=2"}, func(s *saga) { s.engine.Admission = nil }, []string{x}},
		"changed": {"what somebody has written to is tried", []string{x + "=1"}, []string{x + "=2"}, func(s *saga) {
			s.alter(refOf(x).ID, func(o *thing) { o.set("annotations:note", "hello", "somebody") })
		}, []string{x}},
		"drifted": {"what they have taken is repaired before, by the revision that has it", []string{x + "=1"}, []string{x + "=2"}, func(s *saga) {
			s.alter(refOf(x).ID, func(o *thing) { o.set("data:value", "9", "somebody") })
		}, nil},
		"wiped": {"so is what has no managers", []string{x + "=1"}, []string{x + "=2"}, func(s *saga) {
			s.alter(refOf(x).ID, func(o *thing) {
				for path, field := range o.fields {
					o.fields[path] = owned{field.value, nil}
				}
			})
		}, nil},
		"gone": {"when no layer has what was written, it is tried", []string{x + "=1"}, []string{x + "=2"}, func(s *saga) {
			delete(s.bodies, s.stored.Entries[refOf(x).ID].Digest)
		}, []string{x}},
		"adopted": {"what existed before is tried", []string{x + "=1"}, []string{x + "=2"}, func(s *saga) {
			entry := s.stored.Entries[refOf(x).ID]
			entry.Adopted = true
			s.stored.Entries[refOf(x).ID] = entry
		}, []string{x}},
		"yielded": {"and what is not all ours", []string{x + "=1"}, []string{x + "=2"}, func(s *saga) {
			entry := s.stored.Entries[refOf(x).ID]
			entry.Yielded = []string{"data.more"}
			s.stored.Entries[refOf(x).ID] = entry
		}, []string{x}},
	} {
		t.Run(name, func(t *testing.T) {
			s := foreseeing()
			one := s.revision(1).phase("all", c.before...)
			s.roll(t, one)
			c.meddle(s)
			s.deliver(len(s.changes))
			s.become(s.revision(2).phase("all", c.after...), one)
			s.spent()
			if _, err := s.pass(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.tries()); diff != "" {
				t.Errorf("%s (-want +tried):\n%s", c.reason, diff)
			}
			s.settle(t)
			for _, object := range c.after {
				name, want, _ := strings.Cut(object, "=")
				if got := s.content(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestInstallationPrepares: an installation has what its first update needs found out, and what is
// as it should be does not.
func TestInstallationPrepares(t *testing.T) {
	const x = "ConfigMap a/x"
	s := foreseeing()
	one := s.revision(1).phase("all", x+"=1")
	s.roll(t, one)
	if s.engine.Admission.(silence).prepared.Load() == 0 {
		t.Error("an installation prepares nothing")
	}
	s.foresees()
	s.become(s.revision(2).phase("all", x+"=1"), one)
	s.settle(t)
	if n := s.engine.Admission.(silence).prepared.Load(); n > 0 {
		t.Errorf("a revision that changes nothing prepares %d times", n)
	}
}

// TestMisjudged: what the server refuses although it was certain is not trusted again.
func TestMisjudged(t *testing.T) {
	const x, y = "ConfigMap a/x", "ConfigMap b/x"
	s := foreseeing()
	metrics := &counting{}
	s.engine.Metrics = metrics
	one := s.revision(1).phase("base", x+"=1").phase("then", y+"=1")
	s.roll(t, one)
	s.refuse = func(verb string, ref manifest.Ref) error {
		if verb == "save" {
			return nil
		}
		return apierrors.NewForbidden(resourceOf(ref), ref.Name, nil)
	}
	two := s.revision(2).phase("base", x+"=2").phase("then", y+"=2")
	s.become(two, one)
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if len(metrics.misjudged) != 1 || metrics.misjudged[0] != refOf(x).ID {
		t.Fatalf("told of %v", metrics.misjudged)
	}
	s.refuse = nil
	s.spent()
	s.settleTries(t, y)
	if len(metrics.misjudged) != 1 {
		t.Errorf("told of %v", metrics.misjudged)
	}
	s.restart()
	s.foresees()
	s.become(s.revision(3).phase("base", x+"=3").phase("then", y+"=3"), two)
	s.settleTries(t)
}

// settleTries lets the chain settle, and compares what was tried meanwhile.
func (s *saga) settleTries(t *testing.T, want ...string) {
	t.Helper()
	var tried []string
	for range 20 {
		s.controllers()
		s.deliver(len(s.changes))
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
		tried = append(tried, s.tries()...)
		s.clock.SetTime(s.clock.Now().Add(lastRetry))
	}
	if diff := cmp.Diff(want, tried); diff != "" {
		t.Errorf("tried (-want +got):\n%s", diff)
	}
}

// counting counts what was misjudged.
type counting struct {
	noMetrics
	misjudged []manifest.ID
}

func (c *counting) Misjudged(id manifest.ID) { c.misjudged = append(c.misjudged, id) }

// TestNothingHalfWritten holds the promise whatever is known: no write of a phase starts while
// one of its objects would be refused. Somebody refuses some objects; of each of them it is
// known that somebody has a say, or nothing is known of its kind.
func TestNothingHalfWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []string{"ConfigMap a/v", "ConfigMap a/w", "ConfigMap a/x", "ConfigMap b/x", "Widget.example.com a/w", "Deployment.apps a/x"}
		s := newSaga()
		s.define(widgets(), defined{versions: map[string]bool{"v1": true}})
		old, now := s.revision(1), s.revision(2)
		var before, after, loud []string
		refused, changed := map[manifest.ID]bool{}, map[manifest.ID]bool{}
		for _, object := range all {
			ref := refOf(object)
			change := rapid.Bool().Draw(t, "changes")
			before = append(before, object+"=1")
			after = append(after, object+map[bool]string{true: "=2", false: "=1"}[change])
			changed[ref.ID] = change
			if rapid.Bool().Draw(t, "loud") {
				loud = append(loud, object)
				refused[ref.ID] = rapid.Bool().Draw(t, "refused")
			} else if ref.Kind == "Widget" {
				refused[ref.ID] = rapid.Bool().Draw(t, "refused")
			}
		}
		s.foresees(loud...)
		s.layers = []Layer{old.phase("all", before...).layer()}
		s.settle(t)
		if rapid.Bool().Draw(t, "meddled") {
			s.alter(refOf(rapid.SampledFrom(all).Draw(t, "object")).ID, func(o *thing) { o.set("annotations:note", "hello", "somebody") })
			s.settle(t)
		}
		s.refuse = func(verb string, ref manifest.Ref) error {
			if !refused[ref.ID] {
				return nil
			}
			return apierrors.NewForbidden(resourceOf(ref), ref.Name, nil)
		}
		s.layers = []Layer{now.phase("all", after...).layer(), s.layers[0]}
		s.spent()
		if _, err := s.pass(); err != nil {
			t.Fatalf("reconciling: %v", err)
		}
		writes, _ := s.spent()
		for id := range changed {
			if changed[id] && refused[id] && slices.ContainsFunc(writes, func(w string) bool { return strings.HasPrefix(w, "apply ") }) {
				t.Fatalf("%s is refused, and the phase was begun: %v", id, writes)
			}
		}
	})
}
