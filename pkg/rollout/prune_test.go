package rollout

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

func inventory(ranks map[string]int) Inventory {
	i := Inventory{Entries: map[manifest.ID]Entry{}, Reached: map[string]int{}}
	for object, rank := range ranks {
		i.Entries[refOf(object).ID] = Entry{Version: "v1", UID: "uid", Rank: rank}
	}
	return i
}

// passOver returns a pass over a chain with this inventory and no layers.
func passOver(s *saga, ranks map[string]int) *pass {
	return s.engine.begin(Work{Owner: "argocd", Inventory: inventory(ranks)})
}

func TestUnclaimed(t *testing.T) {
	s := newSaga()
	cases := map[string]struct {
		reason    string
		layers    []*script
		inventory map[string]int
		want      []string
	}{
		"nothing": {reason: "an empty inventory has nothing to lose", layers: []*script{s.revision(1).phase("a", "ConfigMap a/x=1")}},
		"no layers": {
			reason:    "everything goes, the highest rank first, and by name within",
			inventory: map[string]int{"ConfigMap a/z": 0, "ConfigMap a/y": 2, "ConfigMap a/x": 2, "Deployment.apps a/x": 1},
			want:      []string{"ConfigMap a/x", "ConfigMap a/y", "Deployment.apps a/x", "ConfigMap a/z"},
		},
		"listed": {
			reason:    "what a layer lists stays, reached or not",
			layers:    []*script{s.revision(2).phase("a", "ConfigMap a/x=1").phase("b", "ConfigMap a/y=1")},
			inventory: map[string]int{"ConfigMap a/x": 0, "ConfigMap a/y": 1, "ConfigMap a/z": 5},
			want:      []string{"ConfigMap a/z"},
		},
		"older layer": {
			reason:    "also an older one",
			layers:    []*script{s.revision(2).phase("a", "ConfigMap a/x=1"), s.revision(1).phase("b", "ConfigMap a/y=1")},
			inventory: map[string]int{"ConfigMap a/x": 0, "ConfigMap a/y": 1},
		},
		"same name elsewhere": {
			reason:    "identity is group, kind, namespace and name",
			layers:    []*script{s.revision(1).phase("a", "ConfigMap a/x=1")},
			inventory: map[string]int{"ConfigMap b/x": 0, "Deployment.apps a/x": 0},
			want:      []string{"ConfigMap b/x", "Deployment.apps a/x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := passOver(s, tc.inventory)
			for _, r := range tc.layers {
				p.Layers = append(p.Layers, r.layer())
			}
			var got []string
			for _, o := range p.unclaimed() {
				got = append(got, o.step.ID.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMayRemove(t *testing.T) {
	other := func(o *observe.Observation) { o.UID = "uid-2" }
	cases := map[string]struct {
		reason string
		seen   Seen
		entry  Entry
		want   bool
	}{
		"recorded":               {"the very object", present().ours(want).Seen, *recorded(want), true},
		"recorded, no marks":     {"stripping marks does not make it somebody's", present().Seen, *recorded(want), true},
		"recorded, another":      {"another object has the name", present().with(other).Seen, *recorded(want), false},
		"recorded, made again":   {"we made it again and could not record it", present().ours(want).with(other).Seen, *recorded(want), true},
		"recorded, controlled":   {"a controller is in charge of it now", present().ours(want).with(controlled).Seen, *recorded(want), false},
		"recorded, label edited": {"a label alone takes nothing", present().ours(want).with(func(o *observe.Observation) { o.Chain = "flux" }).Seen, *recorded(want), true},
		"recorded, taken over": {"another chain applied it", present().ours(want).with(func(o *observe.Observation) {
			o.Chain, o.Entries = "flux", append(o.Entries, observe.Entry{Manager: "penstock/flux"})
		}).Seen, *recorded(want), false},
		"intent, ours":       {"the write came before the crash", present().ours(want).Seen, Entry{}, true},
		"intent, foreign":    {"the write did not come to it", present().Seen, Entry{}, false},
		"intent, label only": {"anyone can set a label", present().with(func(o *observe.Observation) { o.Chain = "argocd" }).Seen, Entry{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &pass{setting: &setting{who: argocd}}
			got, owner := p.who.MayRemove(tc.entry, tc.seen.Observation)
			if got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
			}
			if !got && owner == "" {
				t.Error("nobody is named")
			}
		})
	}
}

// TestPruneOrder: the last stage is deleted first, and each stage must be deleted before the next
// deletion starts.
func TestPruneOrder(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("a", "Namespace a=1", "ConfigMap a/x=1").phase("b", "Deployment.apps a/y=1"))
	hold := refOf("Deployment.apps a/y").ID
	s.alter(hold, func(o *thing) { o.finalizers = []string{"example.com/hold"} })
	s.become()
	s.spent()
	for range 3 {
		report, err := s.pass()
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"leaving Deployment.apps a/y Terminating", "leaving ConfigMap a/x Waiting", "leaving Namespace a Waiting"}
		if diff := cmp.Diff(want, failures(report)); diff != "" {
			t.Fatalf("a finalizer holds the rest (-want +got):\n%s", diff)
		}
	}
	s.erase(hold)
	s.settle(t)
	if len(s.objects) != 0 || len(s.stored.Entries) != 0 {
		t.Errorf("left: %v, %v", s.objects, s.stored.Entries)
	}
}

// TestDeleteIsSentOnce: while the watch lags behind a deletion, the delete is not sent again.
func TestDeleteIsSentOnce(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("a", "ConfigMap a/x=1"))
	s.become()
	s.lagging = true
	s.spent()
	for range 3 {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	writes, reads := s.spent()
	if diff := cmp.Diff([]string{"delete ConfigMap a/x"}, writes); diff != "" || len(reads) > 0 {
		t.Errorf("(-want +got):\n%s, and read %v", diff, reads)
	}
	s.lagging = false
	s.deliver(len(s.changes))
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if writes, reads = s.spent(); len(reads) > 0 || !slices.Equal(writes, []string{"save  "}) || len(s.stored.Entries) > 0 {
		t.Errorf("the watch says that it is gone: %v %v, left %v", writes, reads, s.stored.Entries)
	}
}

// TestDeleteJudgesAgain: a lagging watch costs a conflict and a read, and does not delay the
// deletion by half a minute.
func TestDeleteJudgesAgain(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("a", "ConfigMap a/x=1"))
	s.become()
	s.lagging = true
	s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { o.set("annotations:a", "b", "somebody") })
	s.spent()
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if writes, reads := s.spent(); len(s.objects) > 0 {
		t.Errorf("it is still there after %v and %v", writes, reads)
	}
}

// TestPausedWritesNothing: a paused layer neither repairs nor deletes, and reports the pending
// writes.
func TestPausedWritesNothing(t *testing.T) {
	s := newSaga()
	one := s.revision(1).phase("a", "ConfigMap a/x=1", "ConfigMap a/y=1", "ConfigMap a/z=1")
	s.roll(t, one)
	two := s.revision(2).phase("a", "ConfigMap a/x=1", "ConfigMap a/y=1")
	two.paused = true
	s.become(two)
	s.stored.Reached["uid-of-2"] = 1
	s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { o.set("data:value", "9", "somebody") })
	s.spent()
	report, err := s.pass()
	if err != nil {
		t.Fatal(err)
	}
	if writes, reads := s.spent(); len(writes)+len(reads) > 0 {
		t.Errorf("it made requests: %v %v", writes, reads)
	}
	want := []string{"2/a ConfigMap a/x Paused", "leaving ConfigMap a/z Paused"}
	if diff := cmp.Diff(want, failures(report)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPausedAbove: a revision below a paused newer revision is rolled out. Stages that the paused
// revision has reached keep its content.
func TestPausedAbove(t *testing.T) {
	s := newSaga()
	one := s.revision(1).phase("a", "ConfigMap a/x=1").phase("b", "ConfigMap a/y=1")
	two := s.revision(2).phase("a", "ConfigMap a/x=2").phase("b", "ConfigMap a/z=2")
	two.paused = true
	s.become(two, one)
	s.spent()
	var report Report
	for range 3 {
		var err error
		if report, err = s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if !report.Layers[1].Complete || s.stored.Reached["uid-of-2"] != 0 {
		t.Errorf("revision 1 is complete: %t; revision 2 has reached %d stages", report.Layers[1].Complete, s.stored.Reached["uid-of-2"])
	}
	for _, name := range []string{"ConfigMap a/x", "ConfigMap a/y"} {
		if entry := s.stored.Entries[refOf(name).ID]; entry.Revision != 1 {
			t.Errorf("%s has the content of revision %d", name, entry.Revision)
		}
	}
	if _, made := s.stored.Entries[refOf("ConfigMap a/z").ID]; made {
		t.Error("the paused revision wrote")
	}
}

// TestStuckUpgradeBacksOff: the engine retries a refused newer layer at growing intervals, although
// the same object is fine for the older layer.
func TestStuckUpgradeBacksOff(t *testing.T) {
	s := newSaga()
	one := s.revision(1).phase("a", "ConfigMap a/x=1", "ConfigMap a/y=1")
	s.roll(t, one)
	s.become(s.revision(2).phase("a", "ConfigMap a/x=2", "ConfigMap a/y=2"), one)
	s.refuse = func(verb string, ref manifest.Ref) error {
		if verb == "try" && ref.Name == "x" {
			return apierrors.NewForbidden(resourceOf(ref), ref.Name, fmt.Errorf("no"))
		}
		return nil
	}
	s.spent()
	var tries int
	began := s.clock.Now()
	for s.clock.Since(began).Hours() < 1 {
		report, err := s.pass()
		if err != nil {
			t.Fatal(err)
		}
		if report.RequeueAfter <= 0 {
			t.Fatal("nothing brings the next attempt")
		}
		_, reads := s.spent()
		tries += len(reads)
		s.clock.SetTime(s.clock.Now().Add(report.RequeueAfter))
	}
	if tries > 45 {
		t.Errorf("an hour of a refused upgrade cost %d dry-runs", tries)
	}
	s.refuse = nil
	s.clock.SetTime(s.clock.Now().Add(lastRetry))
	if s.settle(t); s.content("ConfigMap a/x") != "2" || s.content("ConfigMap a/y") != "2" {
		t.Error("it does not recover")
	}
}

// TestCollisionWritesNothingOfThePhase: a collision in any wave of a phase prevents all its writes.
func TestCollisionWritesNothingOfThePhase(t *testing.T) {
	s := newSaga()
	s.place(refOf("Deployment.apps a/y"), map[string]string{"value": "theirs"})
	report := s.roll(t, s.revision(1).phase("first", "ConfigMap a/a=1").phase("second", "Namespace a=1", "ConfigMap a/x=1", "Deployment.apps a/y=1"))
	if diff := cmp.Diff([]string{"1/second Deployment.apps a/y Collision"}, failures(report)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := []string{s.content("ConfigMap a/a"), s.content("Namespace a"), s.content("ConfigMap a/x"), s.content("Deployment.apps a/y")}; !slices.Equal(got, []string{"1", "absent", "absent", "theirs"}) {
		t.Errorf("got %v", got)
	}
	s.erase(refOf("Deployment.apps a/y").ID)
	if report := s.settle(t); !report.Layers[0].Complete {
		t.Errorf("when it is gone the phase goes on: %v", failures(report))
	}
}

// TestPredecessorIsNotJudged: a lagging watch still shows an object that existed before ours. That
// causes neither a collision nor a lost entry.
func TestPredecessorIsNotJudged(t *testing.T) {
	s := newSaga()
	one := s.revision(1).phase("a", "ConfigMap a/x=1")
	s.roll(t, one)
	two := s.revision(2).phase("a", "ConfigMap a/x=2")
	s.lagging = true
	s.erase(refOf("ConfigMap a/x").ID)
	s.become(two)
	if _, err := s.pass(); err != nil { // conflict, read, create
		t.Fatal(err)
	}
	made := s.objects[refOf("ConfigMap a/x").ID]
	if made == nil {
		t.Fatal("it was not made again")
	}
	if report, err := s.pass(); err != nil || !slices.Equal(failures(report), []string{"2/a ConfigMap a/x Waiting"}) {
		t.Errorf("got %v, %v", failures(report), err)
	}
	s.become()
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if s.objects[made.ref.ID] != nil {
		t.Error("our object was forgotten instead of deleted")
	}
}

// TestAttemptsDependOnWhatIsSeen: when a kind or an object appears, the next attempt is immediate,
// despite the back-off of earlier failures.
func TestAttemptsDependOnWhatIsSeen(t *testing.T) {
	version := func(v string) observe.Observation { return observe.Observation{ResourceVersion: v} }
	unknown, absent, later := Seen{Presence: observe.Unknown}, Seen{Presence: observe.Absent, Observation: version("5")}, Seen{Presence: observe.Absent, Observation: version("9")}
	cases := map[string]struct {
		reason string
		a, b   Seen
		same   bool
	}{
		"kind comes":    {"then everything is another question", unknown, absent, false},
		"watch goes on": {"how far the watch of nothing came is no news", absent, later, true},
		"object comes":  {"it is there now", absent, Seen{Presence: observe.Present, Observation: version("5")}, false},
		"changes":       {"it is another one", Seen{Presence: observe.Present, Observation: version("5")}, Seen{Presence: observe.Present, Observation: version("6")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (&object{}).attempt(tc.a) == (&object{}).attempt(tc.b); got != tc.same {
				t.Errorf("%s: same attempt %t, want %t", tc.reason, got, tc.same)
			}
		})
	}
}
