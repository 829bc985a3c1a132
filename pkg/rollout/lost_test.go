package rollout

import (
	"slices"
	"strings"
	"testing"
)

// The next tests are faults that random histories found, minimised.

// TestKeepIsReadBeforeADelete: while the watch lags behind our last write, the engine reads the
// object before its deletion, because a user may have asked to keep it.
func TestKeepIsReadBeforeADelete(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1"))
	s.lagging = true
	s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { o.set(keepField, "Orphan", "somebody") })
	s.become(s.revision(2).phase("base", "ConfigMap a/x=2"))
	for range 2 { // the first write comes too late
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	s.become()
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	s.settle(t)
	if got := s.content("ConfigMap a/x"); got != "2" {
		t.Errorf("the object that was to be left is %s", got)
	}
}

// TestAutoscalersKeepWhatIsNotRecorded: after a crash or the loss of the store, the engine
// recognises an unrecorded object and keeps the fields of autoscalers.
func TestAutoscalersKeepWhatIsNotRecorded(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("base", "Deployment.apps a/x=1"))
	s.alter(refOf("Deployment.apps a/x").ID, func(o *thing) { o.set("data:value", "9", "autoscaler@scale") })
	s.stored = Inventory{}
	s.restart()
	s.settle(t)
	if got := s.content("Deployment.apps a/x"); got != "9" {
		t.Errorf("the autoscaler's value is %s", got)
	}
}

// TestAutoscalersKeepWhatWasDisowned: an upgrade of an object without managedFields first applies
// the previous manifest, and omits yielded fields.
func TestAutoscalersKeepWhatWasDisowned(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("base", "Deployment.apps a/x=1"))
	s.alter(refOf("Deployment.apps a/x").ID, func(o *thing) { o.set("data:value", "9", "autoscaler@scale") })
	s.settle(t)
	s.alter(refOf("Deployment.apps a/x").ID, func(o *thing) {
		for path, field := range o.fields {
			o.fields[path] = owned{field.value, slices.DeleteFunc(slices.Clone(field.by), func(by string) bool { return by == "penstock/argocd" })}
		}
	})
	s.become(s.revision(2).phase("base", "Deployment.apps a/x=2"))
	taken := false
	s.webhook = func(o *thing) { taken = taken || o.fields["data:value"].value != "9" }
	s.settle(t)
	if taken {
		t.Errorf("the autoscaler's value was taken on the way; it is %s now", s.content("Deployment.apps a/x"))
	}
}

// TestIntentBeforeWhatMayBeACreate: the update of a deleted object creates it. A crash after that
// does not lose the object.
func TestIntentBeforeWhatMayBeACreate(t *testing.T) {
	for k := range 4 {
		s := newSaga()
		s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1"))
		s.stored = Inventory{}
		s.restart()
		s.lagging = true
		s.erase(refOf("ConfigMap a/x").ID)
		s.become(s.revision(2).phase("base", "ConfigMap a/x=1"))
		s.die(t, k, true)
		s.become()
		s.settle(t)
		if got := s.content("ConfigMap a/x"); got != "absent" {
			t.Errorf("died at write %d: the object of no revision is %s", k, got)
		}
	}
}

// restoredByBackup deletes an object and restores it as a backup does: complete, with another uid,
// and written by the restoring program.
func (s *saga) restoredByBackup(object string) {
	id := refOf(object).ID
	was := s.objects[id].clone()
	s.erase(id)
	s.place(was.ref, nil)
	s.alter(id, func(o *thing) {
		for path, field := range was.fields {
			o.fields[path] = owned{field.value, []string{"velero"}}
		}
	})
}

// TestRestoredByBackup: the engine recognises an object that was restored from a backup. The next
// revision removes the fields that its manifest omits.
func TestRestoredByBackup(t *testing.T) {
	for name, lost := range map[string]bool{"with the record": false, "without it": true} {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1"))
			s.restoredByBackup("ConfigMap a/x")
			if lost {
				s.stored = Inventory{}
				s.restart()
			}
			report := s.settle(t)
			if got := strings.Join(s.tells(report), "\n"); strings.Contains(got, "Collision") {
				t.Fatalf("%s", got)
			}
			if entry := s.stored.Entries[refOf("ConfigMap a/x").ID]; entry.UID != s.objects[refOf("ConfigMap a/x").ID].uid || entry.Adopted {
				t.Errorf("its entry is %+v", entry)
			}
			s.become(s.revision(2).phase("base", "ConfigMap a/x=2"))
			s.settle(t)
			if got := s.content("ConfigMap a/x"); got != "2" {
				t.Errorf("after an upgrade it is %s", got)
			}
			s.become()
			s.settle(t)
			if len(s.objects) != 0 {
				t.Errorf("after the teardown there are %d objects", len(s.objects))
			}
		})
	}
}
