package rollout

import "testing"

// TestMutatedOnEveryWrite: an admission webhook rewrites a value on every write. The engine
// compares with the server's result of its own apply, so there is nothing to repair.
func TestMutatedOnEveryWrite(t *testing.T) {
	s := newSaga()
	s.webhook = func(o *thing) { o.set("data:value", "rewritten", "webhook") }
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1", "Deployment.apps a/y=1"))
	for _, object := range []string{"ConfigMap a/x", "Deployment.apps a/y"} {
		if got := s.content(object); got != "rewritten" {
			t.Errorf("%s is %q", object, got)
		}
		// Another writer's change costs a read and an apply, and causes no loop.
		s.alter(refOf(object).ID, func(o *thing) { o.set("data:theirs", "1", "somebody") })
	}
	s.spent()
	for range 20 {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if writes, reads := s.spent(); len(reads) > 2 || len(writes) > 4 {
		t.Errorf("20 passes made requests: %v %v", writes, reads)
	}
	s.restart()
	s.settle(t)
}
