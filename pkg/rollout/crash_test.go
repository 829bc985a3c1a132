package rollout

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// TestCrashAfterEveryWrite kills the process at its k-th write, for every k, with the write done or
// not done, and restarts it. test/engine/rollout does the same with a real API server.
func TestCrashAfterEveryWrite(t *testing.T) {
	cases := map[string]struct {
		before func(*saga)
		change func(*saga)
		// then changes the desired state for the next process; nil for no change.
		then func(*saga)
		// want is the content at the end. kept are the objects that must not be replaced.
		want map[string]string
		kept []string
		// released is true if the objects exist at the end and do not belong to the chain.
		released bool
	}{
		"install": {
			before: func(*saga) {},
			change: func(s *saga) { s.become(s.first()) },
			want:   map[string]string{"Namespace a": "1", "ConfigMap a/x": "1", "ConfigMap a/old": "1", "Deployment.apps a/y": "1"},
		},
		"upgrade and prune": {
			before: func(s *saga) { s.become(s.first()) },
			change: func(s *saga) { s.become(s.second()) },
			want:   map[string]string{"Namespace a": "1", "ConfigMap a/x": "2", "ConfigMap a/new": "1", "Deployment.apps a/y": "2"},
			kept:   []string{"Namespace a", "ConfigMap a/x", "Deployment.apps a/y"},
		},
		"fall back": {
			before: func(s *saga) {
				s.become(s.first())
				s.settle(t)
				s.become(s.second(), s.first())
			},
			change: func(s *saga) { s.become(s.first()) },
			want:   map[string]string{"Namespace a": "1", "ConfigMap a/x": "1", "ConfigMap a/old": "1", "Deployment.apps a/y": "1"},
			kept:   []string{"Namespace a", "ConfigMap a/x", "ConfigMap a/old", "Deployment.apps a/y"},
		},
		"tear down": {
			before: func(s *saga) { s.become(s.first()) },
			change: func(s *saga) { s.become() },
		},
		"abandon an install": {
			before: func(*saga) {},
			change: func(s *saga) { s.become(s.first()) },
			then:   func(s *saga) { s.become() },
		},
		"abandon an upgrade": {
			before: func(s *saga) { s.become(s.first()) },
			change: func(s *saga) { s.become(s.second(), s.first()) },
			then:   func(s *saga) { s.become(s.first()) },
			want:   map[string]string{"Namespace a": "1", "ConfigMap a/x": "1", "ConfigMap a/old": "1", "Deployment.apps a/y": "1"},
			kept:   []string{"Namespace a", "ConfigMap a/x", "ConfigMap a/old", "Deployment.apps a/y"},
		},
		"adopt": {
			before: func(s *saga) {
				s.place(refOf("ConfigMap a/x"), map[string]string{"value": "theirs"})
				s.place(refOf("Deployment.apps a/y"), map[string]string{"value": "theirs"})
			},
			change: func(s *saga) { s.become(s.first().adopting(stage.AdoptUncontrolled)) },
			want:   map[string]string{"Namespace a": "1", "ConfigMap a/x": "1", "ConfigMap a/old": "1", "Deployment.apps a/y": "1"},
			kept:   []string{"ConfigMap a/x", "Deployment.apps a/y"},
		},
		"orphan": {
			before:   func(s *saga) { s.become(s.first()) },
			change:   func(s *saga) { s.become(); s.orphan[1] = true },
			want:     map[string]string{"Namespace a": "1", "ConfigMap a/x": "1", "ConfigMap a/old": "1", "Deployment.apps a/y": "1"},
			kept:     []string{"Namespace a", "ConfigMap a/x", "ConfigMap a/old", "Deployment.apps a/y"},
			released: true,
		},
		"make again": {
			before: func(s *saga) { s.become(s.first()) },
			change: func(s *saga) { s.erase(refOf("ConfigMap a/x").ID) },
			want:   map[string]string{"Namespace a": "1", "ConfigMap a/x": "1", "ConfigMap a/old": "1", "Deployment.apps a/y": "1"},
			kept:   []string{"Namespace a", "Deployment.apps a/y"},
		},
		"repair": {
			before: func(s *saga) { s.become(s.first()) },
			change: func(s *saga) {
				s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { o.set("data:value", "9", "somebody") })
			},
			want: map[string]string{"Namespace a": "1", "ConfigMap a/x": "1", "ConfigMap a/old": "1", "Deployment.apps a/y": "1"},
			kept: []string{"Namespace a", "ConfigMap a/x", "ConfigMap a/old", "Deployment.apps a/y"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for k := 0; ; k++ {
				died := false
				for _, lands := range []bool{false, true} {
					t.Run(fmt.Sprintf("%d,%t", k, lands), func(t *testing.T) {
						s := newSaga()
						s.place(refOf("ConfigMap bystander/x"), map[string]string{"value": "theirs"})
						tc.before(s)
						s.settle(t)
						kept := s.uids(tc.kept)
						tc.change(s)
						died = s.die(t, k, lands)
						if tc.then != nil {
							tc.then(s)
						}
						s.settle(t)
						tried++

						want := maps.Clone(tc.want)
						if want == nil {
							want = map[string]string{}
						}
						want["ConfigMap bystander/x"] = "theirs"
						got := map[string]string{}
						for id, o := range s.objects {
							got[id.String()] = o.fields["data:value"].value
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("the cluster (-want +got):\n%s", diff)
						}
						if diff := cmp.Diff(kept, s.uids(tc.kept)); diff != "" {
							t.Errorf("objects were replaced (-before +after):\n%s", diff)
						}
						s.compareInventory(t, tc.released)
					})
				}
				if !died {
					break
				}
			}
			t.Logf("%d runs", tried)
		})
	}
}

func (s *saga) first() *script {
	return s.revision(1).phase("base", "Namespace a=1", "ConfigMap a/x=1", "ConfigMap a/old=1").phase("deploy", "Deployment.apps a/y=1")
}

func (s *saga) second() *script {
	return s.revision(2).phase("base", "Namespace a=1", "ConfigMap a/x=2", "ConfigMap a/new=1").phase("deploy", "Deployment.apps a/y=2")
}

func (s *saga) uids(objects []string) map[string]types.UID {
	uids := map[string]types.UID{}
	for _, object := range objects {
		if o := s.objects[refOf(object).ID]; o != nil {
			uids[object] = o.uid
		}
	}
	return uids
}

// die kills the process at its k-th write and restarts it. It returns false if the process finished
// before that write.
func (s *saga) die(t *testing.T, k int, lands bool) bool {
	t.Helper()
	s.fuse, s.lastWriteLands = k, lands
	for range 20 {
		_, err := s.pass()
		if errors.Is(err, errCrash) || s.dead {
			s.restart()
			return true
		}
		if err != nil {
			t.Fatal(err)
		}
		s.controllers()
	}
	s.restart()
	return false
}

// compareInventory compares the inventory with the cluster: it must have an entry for every object
// of the chain, and no other entry.
func (s *saga) compareInventory(t *testing.T, released bool) {
	t.Helper()
	got := map[string]types.UID{}
	for id, entry := range s.stored.Entries {
		got[id.String()] = entry.UID
	}
	want := map[string]types.UID{}
	for id, o := range s.objects {
		if o.fields["labels:"+testNames().ChainLabel].value == "argocd" {
			want[id.String()] = o.uid
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the inventory (-cluster +inventory):\n%s", diff)
	}
	if released && len(want) > 0 {
		t.Errorf("what was to be released is still marked: %v", want)
	}
}
