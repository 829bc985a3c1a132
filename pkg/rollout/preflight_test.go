package rollout

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
)

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

// TestEveryWriteIsTried: the engine tries every update by dry-run, even of a label.
func TestEveryWriteIsTried(t *testing.T) {
	const x, y, z = "ConfigMap a/x", "ConfigMap a/y", "Deployment.apps a/z"
	s := newSaga()
	one := s.revision(1).phase("all", x+"=1", y+"=1", z+"=1")
	s.roll(t, one)
	s.become(s.revision(2).phase("all", x+"=2", y+"=1", z+"=2"), one)
	s.spent()
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{x, z}, s.tries()); diff != "" {
		t.Errorf("tried (-want +got):\n%s", diff)
	}
}

// TestNothingHalfWritten: no write of a phase starts while the server would refuse one of its
// objects.
func TestNothingHalfWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []string{"ConfigMap a/v", "ConfigMap a/w", "ConfigMap a/x", "ConfigMap b/x", "Widget.example.com a/w", "Deployment.apps a/x"}
		s := newSaga()
		s.define(widgets(), defined{versions: map[string]bool{"v1": true}})
		old, now := s.revision(1), s.revision(2)
		var before, after []string
		refused := map[manifest.ID]bool{}
		for _, object := range all {
			before = append(before, object+"=1")
			if rapid.Bool().Draw(t, "changes") {
				after = append(after, object+"=2")
				refused[refOf(object).ID] = rapid.Bool().Draw(t, "refused")
			} else {
				after = append(after, object+"=1")
			}
		}
		s.layers = []Layer{old.phase("all", before...).layer()}
		s.settle(t)
		if rapid.Bool().Draw(t, "meddled") {
			s.alter(refOf(rapid.SampledFrom(all).Draw(t, "object")).ID, func(o *thing) { o.set("annotations:note", "hello", "somebody") })
			s.settle(t)
		}
		s.refuse = func(_ string, ref manifest.Ref) error {
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
		for id, is := range refused {
			if is && slices.ContainsFunc(writes, func(w string) bool { return strings.HasPrefix(w, "apply ") }) {
				t.Fatalf("%s is refused, and the phase was begun: %v", id, writes)
			}
		}
	})
}
