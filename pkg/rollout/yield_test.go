package rollout

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestYields: fields that an autoscaler took stay with it through repairs, upgrades, restarts and
// adoption. They return to the chain when the autoscaler gives them up, or the object is recreated.
func TestYields(t *testing.T) {
	s := newSaga()
	x := refOf("Deployment.apps a/x").ID
	s.roll(t, s.revision(1).phase("deploy", "Deployment.apps a/x=1,more"))
	scale := func(to string) { s.alter(x, func(o *thing) { o.set("data:value", to, "autoscaler@scale") }) }
	is := func(when, value string, writes ...string) {
		t.Helper()
		if got := s.content("Deployment.apps a/x"); got != value {
			t.Errorf("%s: the value is %q, want %q", when, got, value)
		}
		got, _ := s.spent()
		got = slices.DeleteFunc(got, func(w string) bool { return w == "save  " })
		if diff := cmp.Diff(writes, got); writes != nil && diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", when, diff)
		}
	}
	// settle discards the recorded requests, so this test counts them itself.
	pass := func() Report {
		t.Helper()
		report, err := s.pass()
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	s.spent()
	scale("5")
	report := pass()
	is("scaled", "5", []string{}...)
	if len(report.Events) != 1 || report.Events[0].Reason != "Yielded" || report.Events[0].Message != "left fields of Deployment.apps a/x: .data.value to autoscaler" {
		t.Errorf("events: %v", report.Events)
	}
	if got := s.stored.Entries[x].Yielded; !slices.Equal(got, []string{"data.value"}) {
		t.Errorf("remembered: %v", got)
	}
	s.settle(t)
	scale("6")
	s.settle(t)
	is("scaled again", "6")

	s.restart()
	s.roll(t, s.revision(2).phase("deploy", "Deployment.apps a/x=2,most"))
	is("upgraded", "6")
	if o := s.objects[x]; o.fields["data:most"].value != "set" || o.fields["data:more"].value != "" {
		t.Errorf("the other fields are not those of the new manifest: %+v", o)
	}
	// The autoscaler writes while the watch lags, and the next revision is applied first.
	s.lagging = true
	scale("7")
	s.roll(t, s.revision(3).phase("deploy", "Deployment.apps a/x=3"))
	s.lagging = false
	s.settle(t)
	is("scaled unseen", "7")

	s.alter(x, func(o *thing) { delete(o.fields, "data:value") })
	s.settle(t)
	is("let go", "3")
	scale("8")
	s.settle(t)
	s.erase(x)
	s.settle(t)
	is("made anew", "3")
	if got := s.stored.Entries[x].Yielded; len(got) > 0 {
		t.Errorf("a new object has nothing yielded: %v", got)
	}
}

// TestInventoryEqual: equal sees a difference of each field.
func TestInventoryEqual(t *testing.T) {
	full := Entry{Version: "v1", UID: "u", Revision: 1, Digest: "d", ManagedEntry: "m", Generation: 1, ResourceVersion: "1", Rank: 1, Yielded: []string{"a"}}
	if !full.equal(full) {
		t.Error("it does not equal itself")
	}
	for name, change := range map[string]func(*Entry){
		"version":  func(e *Entry) { e.Version = "v2" },
		"uid":      func(e *Entry) { e.UID = "" },
		"revision": func(e *Entry) { e.Revision++ },
		"digest":   func(e *Entry) { e.Digest = "" },
		"entry":    func(e *Entry) { e.ManagedEntry = "" },
		"gen":      func(e *Entry) { e.Generation++ },
		"rv":       func(e *Entry) { e.ResourceVersion = "" },
		"rank":     func(e *Entry) { e.Rank++ },
		"yielded":  func(e *Entry) { e.Yielded = nil },
	} {
		other := full
		if change(&other); full.equal(other) {
			t.Errorf("%s: a difference is not seen", name)
		}
	}
}
