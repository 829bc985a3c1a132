package rollout

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// theirs is an object that another user created.
const theirs = "ConfigMap a/default"

func TestDecideCreateOnly(t *testing.T) {
	step := stage.Step{Ref: refOf(theirs), Policy: stage.Policy{CreateOnly: true, Adopt: stage.AdoptAlways}}
	foreign := observe.Observation{UID: "u", ResourceVersion: "7", Chain: "other"}
	deleting := foreign
	deleting.Deleting = true
	cases := map[string]struct {
		reason string
		seen   Seen
		memo   *Entry
		want   Action
	}{
		"Absent":    {"it is created", Seen{Presence: observe.Absent}, nil, Create},
		"Present":   {"it is there, no matter who has it", Seen{Presence: observe.Present, Observation: foreign}, nil, Idle},
		"WasOurs":   {"it is not repaired", Seen{Presence: observe.Present, Observation: foreign}, &Entry{UID: "u", Digest: "sha256:1"}, Idle},
		"Deleting":  {"it is about to be absent, and cannot be created yet", Seen{Presence: observe.Present, Observation: deleting}, nil, Deferred},
		"Unwatched": {"a missing answer is not absence", Seen{Presence: observe.Unknown}, nil, Deferred},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Decide(Identity{Chain: "argocd", Manager: "penstock/argocd"}, step, tc.seen, tc.memo).Action; got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCreateOnlyObjectIsNobodys(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("defaults", theirs+"=ours@0", "ConfigMap a/managed=1"))
	made := s.objects[refOf(theirs).ID]
	if made == nil {
		t.Fatal("the default was not created")
	}
	if diff := cmp.Diff(map[string]string{"data:value": "ours"}, valuesOf(made, "")); diff != "" {
		t.Errorf("what is created is the manifest, without a mark of ours (-want +got):\n%s", diff)
	}
	if _, recorded := s.stored.Entries[refOf(theirs).ID]; recorded {
		t.Error("the inventory has it: what is in the inventory is deleted one day")
	}
}

func TestCreateOnlyObjectThatExistsIsLeftAlone(t *testing.T) {
	s := newSaga()
	s.place(refOf(theirs), map[string]string{"value": "theirs"})
	before := s.objects[refOf(theirs).ID]
	report := s.roll(t, s.revision(1).adopting(stage.AdoptAlways).phase("defaults", theirs+"=ours@0"))
	if s.objects[refOf(theirs).ID] != before {
		t.Error("the object was written")
	}
	if !report.Layers[0].Complete {
		t.Errorf("an object that exists is success: %v", failures(report))
	}
}

// TestCreateOnlyObjectIsFoundAtTheLastMoment: a user creates the object between the engine's
// observation and its write.
func TestCreateOnlyObjectIsFoundAtTheLastMoment(t *testing.T) {
	s := newSaga()
	id := refOf(theirs).ID
	s.refuse = func(verb string, ref manifest.Ref) error {
		if verb == "apply" && ref.ID == id && s.objects[id] == nil {
			now := &thing{ref: ref, fields: map[string]owned{}, uid: "the-users"}
			now.set("data:value", "theirs", "cluster-bootstrap")
			s.store(id, now)
		}
		return nil
	}
	report := s.roll(t, s.revision(1).phase("defaults", theirs+"=ours@0"))
	if got := s.content(theirs); got != "theirs" || s.objects[id].uid != "the-users" {
		t.Errorf("the user's content was lost: %s", got)
	}
	if !report.Layers[0].Complete {
		t.Errorf("that somebody was faster is success: %v", failures(report))
	}
}

func TestCreateOnlyObjectIsCreatedAgainAndNeverRepaired(t *testing.T) {
	s := newSaga()
	id := refOf(theirs).ID
	revision := s.revision(1).phase("defaults", theirs+"=ours@0")
	s.roll(t, revision)
	s.alter(id, func(o *thing) { o.set("data:value", "edited", "somebody") })
	s.roll(t, revision)
	if got := s.content(theirs); got != "edited" {
		t.Errorf("an edit was undone: %s", got)
	}
	s.erase(id)
	s.deliver(len(s.changes))
	report, err := s.pass()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.content(theirs); got != "ours" {
		t.Errorf("after somebody deleted it: %s", got)
	}
	if !slices.ContainsFunc(report.Events, func(e Event) bool { return e.Reason == "Recreated" }) {
		t.Errorf("nobody was told: %v", report.Events)
	}
	s.roll(t, revision)
	s.spent()
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if writes, reads := s.spent(); len(writes)+len(reads) > 0 {
		t.Errorf("at rest it costs %v %v", writes, reads)
	}
}

func TestCreateOnlyObjectOnItsWayOutIsWaitedFor(t *testing.T) {
	s := newSaga()
	id := refOf(theirs).ID
	s.place(refOf(theirs), map[string]string{"value": "theirs"})
	s.alter(id, func(o *thing) { o.finalizers, o.deleting = []string{"somebodys"}, true })
	s.become(s.revision(1).phase("defaults", theirs+"=ours@0"))
	for range 3 {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	report, err := s.pass()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1/defaults ConfigMap a/default Terminating"}, failures(report)); diff != "" || report.Layers[0].Complete {
		t.Errorf("an object that is being deleted is not there (-want +got):\n%s", diff)
	}
	s.erase(id)
	s.settle(t)
	if got := s.content(theirs); got != "ours" {
		t.Errorf("when it was gone: %s", got)
	}
}

func TestCreateOnlyObjectOutlivesItsRevisions(t *testing.T) {
	s := newSaga()
	first := s.revision(1).phase("defaults", theirs+"=ours@0", "ConfigMap a/managed=1")
	second := s.revision(2).phase("defaults", "ConfigMap a/managed=2")
	s.roll(t, first)
	before := s.objects[refOf(theirs).ID]
	s.roll(t, second, first)
	s.roll(t, second) // the objects that only the first revision had are pruned
	s.roll(t)         // all objects are deleted
	if s.objects[refOf(theirs).ID] != before {
		t.Error("a create-only object was pruned or torn down")
	}
	if got := s.content("ConfigMap a/managed"); got != "absent" {
		t.Errorf("the managed object stays: %s", got)
	}
}

func TestObjectBecomesCreateOnly(t *testing.T) {
	s := newSaga()
	id := refOf(theirs).ID
	owned, given := s.revision(1).phase("a", theirs+"=1"), s.revision(2).phase("a", theirs+"=2@0")
	s.roll(t, owned)
	s.roll(t, given, owned)
	if got := s.objects[id].fields["labels:penstock.dev/chain"].value; got != "argocd" {
		t.Errorf("while the older revision may come back, the object stays its own: label %q", got)
	}
	s.roll(t, given)
	if diff := cmp.Diff(map[string]string{"data:value": "1"}, valuesOf(s.objects[id], "")); diff != "" {
		t.Errorf("then it is released, as it is (-want +got):\n%s", diff)
	}
	if len(s.stored.Entries) > 0 {
		t.Errorf("the inventory has it still: %v", s.stored.Entries)
	}
	s.roll(t)
	if got := s.content(theirs); got != "1" {
		t.Errorf("and never deleted: %s", got)
	}
}

func TestPausedRevisionCreatesNoDefaults(t *testing.T) {
	s := newSaga()
	revision := s.revision(1).phase("a", theirs+"=1@0")
	s.roll(t, revision)
	s.erase(refOf(theirs).ID)
	revision.paused = true
	s.become(revision)
	report, err := s.pass()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.content(theirs); got != "absent" {
		t.Errorf("a paused revision wrote: %s", got)
	}
	if diff := cmp.Diff([]string{"1/a ConfigMap a/default Paused"}, failures(report)); diff != "" {
		t.Errorf("and says so (-want +got):\n%s", diff)
	}
}

// TestLateWatchOfCreateOnlyObject: while the watch does not show a created object yet, the next
// pass does not create it again.
func TestLateWatchOfCreateOnlyObject(t *testing.T) {
	s := newSaga()
	s.become(s.revision(1).phase("a", theirs+"=1@0"))
	s.lagging = true
	for range 3 {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	writes, _ := s.spent()
	creates := slices.DeleteFunc(writes, func(w string) bool { return w != "apply ConfigMap a/default" })
	if len(creates) != 1 {
		t.Errorf("it was created %d times", len(creates))
	}
}
