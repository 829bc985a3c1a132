package rollout

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// TestAdoptedIsLeft: an object that existed before the chain is released when the chain is deleted.
// Exceptions are the policy of its revision, and an object that had been installed with another
// extension.
func TestAdoptedIsLeft(t *testing.T) {
	const before, made = "Namespace b", "ConfigMap b/x"
	for name, tc := range map[string]struct {
		reason string
		// labelled is the chain label of the object before the adoption.
		labelled string
		remove   func(s *saga)
		want     string
	}{
		"Deleted":      {"nobody made it for this", "", func(s *saga) { s.become() }, "1"},
		"Pruned":       {"a revision does not list it any more", "", func(s *saga) { s.become(s.revision(2).phase("all", made+"=2")) }, "1"},
		"Upgraded":     {"it was adopted by an older revision", "", func(s *saga) {}, "1"},
		"PolicyDelete": {"that was asked for", "", func(s *saga) { s.deletesAdopted = map[int64]bool{1: true}; s.become() }, "absent"},
		"OfHelm":       {"a release had installed it", "app.kubernetes.io/managed-by=Helm", func(s *saga) { s.become() }, "absent"},
		"OfOLM":        {"OLM had installed it", "olm.owner=operator", func(s *saga) { s.become() }, "absent"},
		"Restarted":    {"another process removes it", "", func(s *saga) { s.restart(); s.become() }, "1"},
		"MadeAnew": {"somebody deleted it, and the chain made another one", "", func(s *saga) {
			s.erase(refOf(before).ID)
			s.news = true
		}, "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			fields := map[string]string{"value": "0"}
			s.place(refOf(before), fields)
			if key, value, labelled := strings.Cut(tc.labelled, "="); labelled {
				s.alter(refOf(before).ID, func(o *thing) { o.set("labels:"+key, value, "somebody") })
			}
			one := s.revision(1).adopting(stage.AdoptAlways).phase("all", before+"=1", made+"=1")
			s.roll(t, one)
			tc.remove(s)
			s.settle(t)
			switch name {
			case "Upgraded":
				s.roll(t, s.revision(2).adopting(stage.AdoptAlways).phase("all", before+"=1", made+"=2"))
				s.roll(t)
			case "MadeAnew":
				s.roll(t)
			}
			if got := s.content(before); got != tc.want {
				t.Errorf("%s: it is %s, want %s", tc.reason, got, tc.want)
			}
			if o := s.objects[refOf(before).ID]; o != nil && (o.fields["labels:"+testNames().ChainLabel].value != "" || len(s.stored.Entries) > 1) {
				t.Errorf("it is left with marks of ours, or in the inventory: %+v", o)
			}
			if got := s.content(made); name != "Pruned" && got != "absent" {
				t.Errorf("what the chain made is %s", got)
			}
		})
	}
}

// TestAdoptedCrash: the inventory records an adoption despite a crash after any of its writes. With
// levels, the engine reads nothing before the first write.
func TestAdoptedCrash(t *testing.T) {
	for name, describe := range map[string]func(*script) *script{
		"phases": func(r *script) *script { return r },
		"levels": (*script).byLevels,
	} {
		for fuse := range 8 {
			s := newSaga()
			s.place(refOf("Namespace b"), map[string]string{"value": "0"})
			s.become(describe(s.revision(1).adopting(stage.AdoptAlways)).phase("all", "Namespace b=1"))
			s.fuse, s.lastWriteLands = fuse, true
			if _, err := s.pass(); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			s.restart()
			s.settle(t)
			s.roll(t)
			if got := s.content("Namespace b"); got != "1" {
				t.Errorf("by %s, behind write %d: it is %s", name, fuse, got)
			}
		}
	}
}

// TestAdoptedGoes: the engine creates an object that is deleted before its adoption.
func TestAdoptedGoes(t *testing.T) {
	for name, describe := range map[string]func(*script) *script{
		"phases": func(r *script) *script { return r },
		"levels": (*script).byLevels,
	} {
		s, x := newSaga(), refOf("ConfigMap a/x")
		s.place(x, map[string]string{"value": "0"})
		s.become(describe(s.revision(1).adopting(stage.AdoptAlways).phase("all", "ConfigMap a/x=1")))
		s.refuse = func(verb string, _ manifest.Ref) error {
			if verb == "reassign" {
				return apierrors.NewServiceUnavailable("the API server starts again")
			}
			return nil
		}
		s.rest(t)
		if !s.stored.Entries[x.ID].Adopted {
			t.Fatalf("by %s: %+v is not what was to be tested", name, s.stored)
		}
		s.refuse = nil
		s.erase(x.ID)
		if report := s.rest(t); !report.Layers[0].Complete {
			t.Errorf("by %s: %v", name, failures(report))
		}
	}
}
