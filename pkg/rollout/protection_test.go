package rollout

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// tries does some passes and lets time pass.
func tries(t *testing.T, s *saga) (last Report) {
	t.Helper()
	for range 10 {
		s.controllers()
		s.deliver(len(s.changes))
		var err error
		if last, err = s.pass(); err != nil {
			t.Fatal(err)
		}
		s.clock.SetTime(s.clock.Now().Add(lastRetry))
	}
	return last
}

// TestProtectedRests: the engine checks the protection of an object again from time to time, and
// when a user allows the takeover.
func TestProtectedRests(t *testing.T) {
	const object = "ConfigMap n/x"
	keep := newSaga()
	keep.owner = "keep"
	keep.place(refOf("Namespace n"), map[string]string{"value": "0"})
	keep.alter(refOf("Namespace n").ID, func(o *thing) { o.set("labels:"+testNames().ProtectLabel, "true", "admin") })
	keep.roll(t, keep.revision(1).phase("all", object+"=keep"))
	bob := keep.beside("bob")
	bob.become(bob.revision(1).adopting(stage.AdoptAlways).phase("all", object+"=theirs"))
	tries(t, bob)
	bob.spent()
	report, err := bob.pass()
	if err != nil {
		t.Fatal(err)
	}
	if report.RequeueAfter < firstRetry {
		t.Errorf("the next try is in %s", report.RequeueAfter)
	}
	bob.spent()
	if _, err := bob.pass(); err != nil {
		t.Fatal(err)
	}
	if writes, reads := bob.spent(); len(writes)+len(reads) > 0 {
		t.Errorf("a pass before that sent %v %v", writes, reads)
	}
	bob.takesFrom = map[int64]map[string]bool{1: {"keep": true}}
	bob.settle(t)
	if got := bob.content(object); got != "theirs" {
		t.Errorf("it is %s, and somebody has allowed the takeover", got)
	}
}

// TestProtected: the ways in which another extension could take an object in a protected namespace
// from the extension "keep".
func TestProtected(t *testing.T) {
	const object, home = "PersistentVolumeClaim n/data", "Namespace n"
	allowed := map[int64]map[string]bool{1: {"keep": true}, 2: {"keep": true}}
	takesOver := func(t *testing.T, s *saga) Report {
		s.become(s.revision(1).adopting(stage.AdoptAlways).phase("all", object+"=theirs"))
		return tries(t, s)
	}
	// namespaces are adopted, and then deleted with the revision, or by the next revision that
	// omits them.
	namespaces := func(t *testing.T, s *saga) {
		s.deletesAdopted = map[int64]bool{1: true, 2: true}
		s.become(s.revision(1).adopting(stage.AdoptAlways).phase("all", home+"=theirs", "ConfigMap o/x=1"))
		s.settle(t)
		s.inside = map[string][]metav1.PartialObjectMetadata{"n": {lodger(object, func(o *metav1.PartialObjectMetadata) {
			o.Labels = map[string]string{testNames().ChainLabel: "keep"}
		})}}
	}
	for name, tc := range map[string]struct {
		reason    string
		protected string
		takesFrom map[int64]map[string]bool
		do        func(*testing.T, *saga) Report
		// lost is true if keep loses the object; otherwise says is a part of the report.
		lost bool
		says string
	}{
		"TakeOver":            {"a takeover ends the protection", "true", nil, takesOver, false, `belongs to the extension "keep", and its namespace protects`},
		"TakeOverOfAnother":   {"the right is for one extension", "true", map[int64]map[string]bool{1: {"other": true}}, takesOver, false, "penstock.dev/take-over-from"},
		"TakeOverOfRevision":  {"and for one revision", "true", map[int64]map[string]bool{2: {"keep": true}}, takesOver, false, "penstock.dev/take-over-from"},
		"TakeOverAllowed":     {"somebody who may has said so", "true", allowed, takesOver, true, ""},
		"TakeOverUnprotected": {"nobody asked for protection", "", nil, takesOver, true, ""},
		"TakeOverFalse":       {"the value counts", "false", nil, takesOver, true, ""},
		"Delete": {"the namespace goes with its revision", "true", nil, func(t *testing.T, s *saga) Report {
			namespaces(t, s)
			s.become()
			return tries(t, s)
		}, false, "protects objects of 1 other extension"},
		"Prune": {"the namespace is in no revision any more", "true", nil, func(t *testing.T, s *saga) Report {
			namespaces(t, s)
			s.become(s.revision(2).phase("all", "ConfigMap o/x=1"))
			return tries(t, s)
		}, false, "keep"},
		"DeleteAllowed": {"somebody who may has said so", "true", allowed, func(t *testing.T, s *saga) Report {
			namespaces(t, s)
			s.become()
			return tries(t, s)
		}, true, ""},
		"DeleteUnprotected": {"nobody asked for protection", "", nil, func(t *testing.T, s *saga) Report {
			namespaces(t, s)
			s.become()
			return tries(t, s)
		}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			keep := newSaga()
			keep.owner = "keep"
			keep.place(refOf(home), map[string]string{"value": "0"})
			if tc.protected != "" {
				keep.alter(refOf(home).ID, func(o *thing) { o.set("labels:"+testNames().ProtectLabel, tc.protected, "admin") })
			}
			keep.roll(t, keep.revision(1).phase("all", object+"=keep"))
			bob := keep.beside("bob")
			bob.takesFrom = tc.takesFrom
			report := tc.do(t, bob)
			claim := bob.objects[refOf(object).ID]
			lost := claim == nil || claim.fields["labels:"+testNames().ChainLabel].value != "keep" || bob.objects[refOf(home).ID] == nil
			var said []string
			for _, layer := range report.Layers {
				for _, phase := range layer.Phases {
					for _, failure := range phase.Failures {
						said = append(said, failure.Message)
					}
				}
			}
			for _, failure := range report.Leaving {
				said = append(said, failure.Message)
			}
			if text := strings.Join(said, "\n"); lost != tc.lost || !strings.Contains(text, tc.says) {
				t.Errorf("%s: lost is %t, want %t; said %q, want %q", tc.reason, lost, tc.lost, text, tc.says)
			}
		})
	}
}
