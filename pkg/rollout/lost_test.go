package rollout

import (
	"slices"
	"testing"
)

// What random histories found once, each as short as it can be told.

// TestKeepIsReadBeforeADelete: while the watch has not come to our last write, it is
// not known whether somebody asked for the object to be left.
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

// TestAutoscalersKeepWhatIsNotRecorded: whoever recognises an object that no record
// knows, after a crash or with a store that was lost, takes nothing from others.
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

// TestAutoscalersKeepWhatWasDisowned: an upgrade of an object whose managedFields are
// gone begins with the manifest before, and leaves out what had been yielded.
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

// TestIntentBeforeWhatMayBeACreate: an update of an object that turns out to be gone
// is a create, and a crash behind it must not lose the object.
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
